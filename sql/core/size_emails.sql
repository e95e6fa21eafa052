-- Reads each template once and renders nothing large, so that a call beyond its limits is refused before it costs time.
create function core.size_emails(
  calls jsonb, items jsonb, is_shared boolean,
  out sized core.sized_email[], out templates core.parsed_template[], out too_large integer[]
)
language plpgsql stable
as $$
declare
  -- Limit of a call for templates, and again for the bodies rendered from them: as much as its own body may
  -- have. In a shared run the limit is for an organisation, and takes some 5 ms.
  v_max_bytes integer := case when is_shared then 256 * 1024 else 16 * 1024 * 1024 end;
  v_scope text;
  -- By scope: a call, or in a shared run an organisation.
  v_parsed_bytes jsonb := '{}';
  v_rendered_bytes jsonb := '{}';
  v_item record;
  v_template record;
  v_parsed core.parsed_template;
  v_email core.sized_email;
  -- The place in templates, by organisation and template id; 0 when the organisation has no such template.
  v_places jsonb := '{}';
  v_place integer;
begin
  templates := '{}';
  for v_item in
    select i.ordinality as place, i.call, i.template_id, i.subject, i.variables, c.organisation_id,
      c.organisation_id || ' ' || i.template_id as key
    from rows from (
      jsonb_to_recordset(items) as (call integer, template_id text, subject text, variables jsonb)
    ) with ordinality as i
    join jsonb_to_recordset(calls) as c (n integer, organisation_id uuid) on c.n = i.call
    where i.template_id is not null
    order by i.ordinality
  loop
    v_scope := case when is_shared then v_item.organisation_id::text else v_item.call::text end;
    v_email := null;
    v_place := v_places -> v_item.key;
    if v_place is null then
      -- Read and parse the template, within the limit. The lengths of stored texts are known without reading them.
      select t.*, coalesce(octet_length(t.html), 0) + coalesce(octet_length(t.text), 0) as bytes into v_template
      from app.templates t
      where t.id = core.decode_id('tpl', v_item.template_id) and t.organisation_id = v_item.organisation_id;
      if not found then
        v_place := 0;
      elsif coalesce((v_parsed_bytes ->> v_scope)::integer, 0) + v_template.bytes <= v_max_bytes then
        v_parsed := (v_template.subject, core.parse_template_text(v_template.html), core.parse_template_text(v_template.text));
        templates := templates || v_parsed;
        v_place := cardinality(templates);
        v_parsed_bytes := v_parsed_bytes
          || jsonb_build_object(v_scope, coalesce((v_parsed_bytes ->> v_scope)::integer, 0) + v_template.bytes);
      end if;
      v_places := v_places || jsonb_strip_nulls(jsonb_build_object(v_item.key, v_place));
    end if;

    -- Size the email.
    if v_place = 0 then
      v_email.fields := '{"templateId": ["is not a template of this organisation"]}';
    elsif v_place is not null then
      v_parsed := templates[v_place];
      v_email := core.size_email(coalesce(v_item.subject, v_parsed.subject), (v_parsed.html).bytes, (v_parsed.html).names,
        (v_parsed.text).bytes, (v_parsed.text).names, coalesce(v_item.variables, '{}'));
    end if;
    -- Count its bodies against the limit.
    if v_place is null or coalesce((v_rendered_bytes ->> v_scope)::integer, 0) + v_email.bytes > v_max_bytes then
      if is_shared then
        too_large := too_large || v_item.call;
      end if;
      v_email.fields := format('{"templateId": ["together with the emails before it is larger than %s MB once rendered"]}',
        v_max_bytes / 1024 / 1024);
    elsif v_email.bytes > 0 then
      v_rendered_bytes := v_rendered_bytes
        || jsonb_build_object(v_scope, coalesce((v_rendered_bytes ->> v_scope)::integer, 0) + v_email.bytes);
    end if;
    v_email.template := v_place;
    sized[v_item.place] := v_email;
  end loop;
end
$$;

comment on function core.size_emails is
  'Parse the templates of items and size their emails. sized: by the place of the item. too_large: the calls that must not share a run with others.';
