create function core.has_opt_out_footer(body text)
returns boolean
language sql immutable
as $$
  select body ~* any (array[
    -- How to send it: "Reply STOP", "Text 'STOP' …", "SMS the word STOP", "Stuur STOP", "Thumela u-STOP", "Romela EMISA".
    $re$\y(reply|rply|respond|send|text|txt|sms|type|antwoord|stuur|phendula|thumela|bhala|araba|romela|ngola)(ing)?( back)?( with| met| nge| ngo| ka)?( the word| die woord| igama| lentswe)?[\s"'“”‘’*(]+((u|ngo)-?)?(stop|staak|hou op|kanselleer|teken uit|yeka|misa|yima|khansela|rhoxisa|ema|emisa|kgaotsa|tlohela)\y(?!['’-]\w)$re$,
    -- Where to send it: "STOP to 12345", "STOP to +27 82 000 0000", "STOP na 12345", "STOP ku-12345", "STOP ho 12345".
    $re$(?<![\w'’-])stop['"”’)]?\s+(to|na|ku|ho)[\s-]+(\+[0-9]+|[0-9]{3,})\y$re$,
    -- What it does: "STOP to opt out", "STOP2END", "STOP = unsubscribe".
    $re$(?<![\w'’-])stop['"”’)]?\s*(to|2)\s*(opt[\s-]?out|unsub|cancel|quit|be removed|end\y(?! of))$re$,
    $re$(?<![\w'’-])stop['"”’)]?\s*(for|:|=|->)\s*(opt[\s-]?out|unsub)$re$,
    -- The reverse order: "Opt out: STOP", "Opt-out by STOP", "Unsubscribe = STOP", "Teken uit: STOP".
    $re$\y(opt[\s-]?out|unsub(scribe)?|teken uit)\s*[:=>–—-]*\s*((by|with|via|met)\s+)?['"“‘*(]?stop\y(?!['’-]\w)$re$
  ])
$$;

comment on function core.has_opt_out_footer is
  'Returns whether a text says how to opt out, in one of the forms listed in src/docs/sms.md, in any case: with STOP or a word for it in Afrikaans, isiZulu, isiXhosa or Sesotho.';
