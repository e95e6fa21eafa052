import pg from 'pg'
import t from 'tap'
import { withSettings } from '../../src/db/client.ts'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, post } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()

/** An operator's address with two settings, one of which the service sets as well. */
const address = `${url}?application_name=theirs&options=-c%20statement_timeout%3D61s%20-c%20jit%3Don`

t.test('withSettings: adds settings to those of the address and overrides them', async (t) => {
  const client = new pg.Client({
    connectionString: withSettings(address, { jit: 'off', role: 'postgram_service' }),
  })
  await client.connect()
  const { rows } = await client.query(`
    select current_setting('statement_timeout') as statement_timeout, current_setting('jit') as jit,
      current_user, current_setting('application_name') as application_name`)
  await client.end()
  t.same(rows, [
    {
      statement_timeout: '61s',
      jit: 'off',
      current_user: 'postgram_service',
      application_name: 'theirs',
    },
  ])
})

t.test('a service whose address sets a role never works as the owner', async (t) => {
  const { liveKey, domain } = await createOrganisation(sql)
  await sql.unsafe(`
    create table public.enders (who text);
    grant insert on public.enders to public;
    create function public.note_ender() returns trigger language plpgsql as $$
      begin insert into public.enders values (current_user); return null; end $$;
    create trigger note_ender after delete on graphile_worker._private_jobs
    for each row execute function public.note_ender()`)
  const { base } = await startTestService(address)
  const { json } = await post(`${base}/v1/emails`, liveKey, anEmail(domain))
  await until('delivery', async () => {
    const [row] = await sql`
      select from ops.messages where id = ${json.id} and status = 'delivered'
        and exists (select from public.enders)`
    return row
  })
  t.same([...(await sql`select distinct who from public.enders`)], [{ who: 'postgram_service' }])
})
