import { type Attack, email, type Shot } from '../attack.ts'

const NAMES = Array.from({ length: 200 }, (_, n) => `name${n}`)

export const template: Attack = {
  name: 'template',
  title: 'emails of a template with 200 placeholders, 10 000 characters for each, 20 at a time',
  async prepare(sql, organisation) {
    const html = NAMES.map((name) => `{{${name}}}`).join(' ')
    const [row] = await sql<{ id: string }[]>`
      select ops.create_template(${organisation}, 'large', 'Hello', ${html}, null) as id`
    return row ? [row.id] : []
  },
  aim({ attackers, flood }) {
    const variables = Object.fromEntries(NAMES.map((name) => [name, 'x'.repeat(10_000)]))
    const shots = new Map(
      attackers.map((attacker) => [
        attacker,
        email(attacker, {
          from: `hello@${attacker.domain}`,
          to: 'delivered@sandbox.postgram.test',
          templateId: attacker.ids[0],
          variables,
        }),
      ]),
    )
    return () => flood(20, (attacker) => shots.get(attacker) as Shot)
  },
}
