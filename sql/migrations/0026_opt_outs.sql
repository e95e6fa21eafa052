-- The dashboard lists the numbers that have opted out, the newest first.

create index consents_opted_out on app.consents (organisation_id, opted_out_at, phone) where opted_out_at is not null;
