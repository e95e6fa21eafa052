create view ops.help as
select m.topic, m.name, core.wrapped(m.arguments, 21) as arguments, core.wrapped(m.sentence, 35) as what
from core.manual() m
order by m.place, m.arguments nulls first;

comment on view ops.help is
  'This manual: every function, view and table of schema ops. Functions have arguments, those in brackets may be left out. ops.help(''domain'') finds entries, ops.example(''pause'') shows how to use one.';

comment on column ops.help.topic is 'What it is about, such as domains.';
comment on column ops.help.name is 'Its name in schema ops.';
comment on column ops.help.arguments is 'The arguments of a function, those in brackets may be left out, or (); null for a view or table.';
comment on column ops.help.what is 'What it does: the first sentence of its comment.';
