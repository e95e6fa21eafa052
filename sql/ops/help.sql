create view ops.help as
select m.topic, core.wrapped_usage(m.name, m.arguments) as usage, core.wrapped(m.sentence, 36) as description
from core.manual() m
order by m.place, m.arguments nulls first;

comment on view ops.help is
  'All functions and views of schema ops. Arguments in brackets are optional. ops.help(''domain'') searches; ops.help(''pause'') shows one entry in full; ops.example(''pause'') returns a statement to copy.';

comment on column ops.help.topic is 'The topic, such as domains.';
comment on column ops.help.usage is
  'The name in schema ops; functions with their arguments, the optional ones in brackets.';
comment on column ops.help.description is 'The first sentence of the comment.';
