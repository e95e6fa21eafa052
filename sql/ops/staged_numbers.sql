create table ops.staged_numbers (
  phone varchar(100)
);

comment on table ops.staged_numbers is
  'Table to copy a file of the national opt-out registry into. One number per line: \copy ops.staged_numbers from ''numbers.csv'' csv, then select ops.apply_staged_numbers().';

comment on column ops.staged_numbers.phone is 'A line of the file: a number in E.164.';
