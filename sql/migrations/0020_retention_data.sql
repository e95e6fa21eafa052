alter table app.retention rename column what to data;
alter table app.retention rename constraint retention_what to retention_data;
