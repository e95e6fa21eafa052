-- postgram_operator may call everything. postgram_report may call only functions that read, without
-- ops.export_person, which returns message bodies.
revoke all on all functions in schema ops from public;
grant usage on schema ops to postgram_operator, postgram_report;
grant select on all tables in schema ops to postgram_operator, postgram_report;
grant insert, delete on ops.staged_numbers to postgram_operator;
grant execute on all functions in schema ops to postgram_operator;
grant execute on function ops.example, ops.help, ops.messages_of, ops.statement, ops.timeline, ops.why to postgram_report;
