-- People: operators may do everything here, reports may only look. What a function changes, or says of
-- a person (ops.export_person), is not for reports.
revoke all on all functions in schema ops from public;
grant usage on schema ops to postgram_operator, postgram_report;
grant select on all tables in schema ops to postgram_operator, postgram_report;
grant insert, delete on ops.staged_numbers to postgram_operator;
grant execute on all functions in schema ops to postgram_operator;
grant execute on function ops.example, ops.help, ops.messages_of, ops.statement, ops.timeline, ops.why to postgram_report;
