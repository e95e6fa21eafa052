import { execFile, spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { connect } from '../../../src/db/client.ts'
import { ROLES } from '../../../src/service/index.ts'
import { argumentsOf, lackOf, readText } from '../../fixtures/deployment.ts'
import { readPage, settingNames } from '../../fixtures/pages.ts'
import { initialise, noPostgres, serverFolder, startServer } from '../../fixtures/postgres.ts'
import { runCommand } from '../../fixtures/processes.ts'

const CHART = new URL('../../../src/docs/helm/postgram/', import.meta.url).pathname
const STOP_SECONDS = 15

const skip = lackOf([
  'golang-go',
  'golang-github-masterminds-sprig-dev',
  'golang-k8s-sigs-yaml-dev',
])

type Probe = { httpGet: { path: string; port: string }; timeoutSeconds: number }
type Variable = { name: string; value?: string; valueFrom?: { secretKeyRef: { name: string } } }
type Container = {
  name: string
  args: string[]
  env: Variable[]
  startupProbe: Probe
  livenessProbe: Probe
  readinessProbe: Probe
  securityContext: Record<string, unknown>
  resources: { limits: { memory: string } }
  lifecycle?: { preStop: { exec: { command: [string, string] } } }
}
type Pod = {
  containers: [Container]
  securityContext: Record<string, unknown>
  terminationGracePeriodSeconds: number
  enableServiceLinks: boolean
}
type Manifest = {
  kind: string
  metadata: { name: string; annotations?: Record<string, string> }
  data: Record<string, string>
  // biome-ignore lint/suspicious/noExplicitAny: it differs with the kind.
  spec: any
}

const image = { repository: 'registry.example.net/postgram' }

t.test('chart', { skip }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'postgram-helm-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const renderer = join(folder, 'render')
  const env = {
    ...{ PATH: process.env.PATH, GO111MODULE: 'off', GOPATH: '/usr/share/gocode' },
    ...{ GOCACHE: folder, CGO_ENABLED: '0' },
  }
  const source = join(import.meta.dirname, 'render.go')
  const built = spawnSync('go', ['build', '-o', renderer, source], { env, encoding: 'utf8' })
  t.equal(built.stderr, '')

  const run = (values: string, action = 'install') =>
    new Promise<{ stdout: string; stderr: string }>((resolve) => {
      const args = [CHART, 'postgram', action, values]
      execFile(renderer, args, (_error, stdout, stderr) => resolve({ stdout, stderr }))
    })
  const render = async (values: Record<string, unknown> = {}, action?: string) => {
    const { stdout, stderr } = await run(JSON.stringify({ image, ...values }), action)
    t.equal(stderr, '')
    const manifests: Manifest[] = JSON.parse(stdout)
    const find = (name: string) => {
      const found = manifests.find(({ kind, metadata }) => `${kind} ${metadata.name}` === name)
      if (!found) throw new Error(`there is no ${name}`)
      return found
    }
    return { manifests, find }
  }
  /** The pods of all manifests, by the name of their container. */
  const podsOf = (manifests: Manifest[]): Record<string, Pod> => {
    const specs = manifests
      .filter(({ kind }) => ['Deployment', 'Job', 'Pod'].includes(kind))
      .map(({ spec }): Pod => spec.template?.spec ?? spec)
    return Object.fromEntries(specs.map((pod) => [pod.containers[0].name, pod]))
  }
  const cluster = { database: { cluster: { enabled: true } } }

  t.test('runs each role with its probes, and leaves it time to stop', async (t) => {
    const { manifests, find } = await render()
    t.same(Object.keys(podsOf(manifests)).sort(), [...ROLES, 'doctor', 'migrate'].sort())
    for (const role of ROLES) {
      const { spec } = find(`Deployment postgram-${role}`)
      const pod: Pod = spec.template.spec
      const [container] = pod.containers
      t.same(container.args, ['start', '--only', role])
      const port = role === 'api' ? 'http' : 'metrics'
      for (const [probe, path] of [
        [container.startupProbe, '/healthz'],
        [container.livenessProbe, '/healthz'],
        [container.readinessProbe, '/readyz'],
      ] as const) {
        t.match(probe, { httpGet: { path, port }, timeoutSeconds: 5 })
      }
      const before = Number(container.lifecycle?.preStop.exec.command[1] ?? 0)
      t.ok(pod.terminationGracePeriodSeconds >= STOP_SECONDS + before + 5)
    }
    t.match(find('Service postgram').spec.ports, [{ port: 80, targetPort: 'http' }])
  })

  t.test('every pod runs without privileges on a read-only root', async (t) => {
    for (const values of [{}, cluster]) {
      for (const [name, pod] of Object.entries(podsOf((await render(values)).manifests))) {
        const user = Number(argumentsOf('USER')[0]?.split(':')[0])
        t.match(pod, { enableServiceLinks: false, automountServiceAccountToken: false }, name)
        t.match(pod.securityContext, { runAsNonRoot: true, runAsUser: user })
        t.match(pod.containers[0].securityContext, {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        })
        t.match(pod.containers[0].resources.limits.memory, /^\dGi$/)
      }
    }
  })

  t.test("gives the owner's address to migrate and doctor only", async (t) => {
    for (const values of [{}, cluster]) {
      const pods = podsOf((await render(values)).manifests)
      const having = Object.keys(pods).filter((name) =>
        JSON.stringify(pods[name]).includes('MIGRATE_DATABASE_URL'),
      )
      t.same(having.sort(), ['doctor', 'migrate'])
    }
  })

  t.test('sets what the service knows, and restarts pods for new settings', async (t) => {
    const settings = { LOG_LEVEL: 'warn', WORKER_CONCURRENCY: 100, WEBHOOK_ALLOW_PRIVATE: false }
    const before = await render()
    const after = await render({ settings })
    const { data } = after.find('ConfigMap postgram')
    t.match(data, { LOG_LEVEL: 'warn', WORKER_CONCURRENCY: '100', WEBHOOK_ALLOW_PRIVATE: 'false' })
    t.same(
      Object.keys(data).filter((name) => !settingNames.includes(name)),
      [],
    )
    const annotations = (found: typeof after) =>
      found.find('Deployment postgram-api').spec.template.metadata.annotations
    t.not(annotations(after)['checksum/settings'], annotations(before)['checksum/settings'])
  })

  t.test('migrates before the pods of a version start', async (t) => {
    for (const action of ['install', 'upgrade']) {
      const { find } = await render({ migrate: { breaking: true } }, action)
      const { metadata, spec } = find('Job postgram-migrate')
      t.equal(metadata.annotations?.['helm.sh/hook'], 'pre-install,pre-upgrade')
      t.same(spec.template.spec.containers[0].args, ['migrate', '--breaking'])
    }
    // A hook would wait for a cluster that is made after it.
    const first = await render(cluster)
    t.equal(first.find('Job postgram-migrate-first').metadata.annotations, undefined)
    const next = await render(cluster, 'upgrade')
    t.match(next.find('Job postgram-migrate').metadata.annotations, {
      'helm.sh/hook': 'pre-install,pre-upgrade',
    })
  })

  t.test('serves a host with TLS, and closes ports by a network policy', async (t) => {
    const peer = { podSelector: { matchLabels: { app: 'prometheus' } } }
    const { find, manifests } = await render({
      ingress: { enabled: true, host: 'api.example.net', tlsSecret: 'tls' },
      networkPolicy: { enabled: true, metricsFrom: [peer] },
    })
    const { spec } = find('Ingress postgram')
    t.same(spec.tls, [{ hosts: ['api.example.net'], secretName: 'tls' }])
    t.equal(spec.rules[0].host, 'api.example.net')
    t.same(find('NetworkPolicy postgram-worker').spec.ingress, [
      { ports: [{ port: 'metrics' }], from: [peer] },
    ])
    t.same(find('NetworkPolicy postgram-api').spec.ingress[0], { ports: [{ port: 'http' }] })
    t.equal(manifests.filter(({ kind }) => kind === 'PodDisruptionBudget').length, ROLES.length)
    const without = (await render({ networkPolicy: { enabled: true } })).find(
      'NetworkPolicy postgram-worker',
    )
    t.same([without.spec.policyTypes, without.spec.ingress], [['Ingress'], undefined])
  })

  t.test('takes the values of the page on deployment', async (t) => {
    const { blocks } = await readPage('deployment')
    const values = blocks.find(({ attributes }) => attributes.id === 'helm-values')?.text ?? ''
    const { stdout, stderr } = await run(values)
    t.equal(stderr, '')
    const manifests: Manifest[] = JSON.parse(stdout)
    const hosts = manifests
      .filter(({ kind }) => kind === 'Ingress')
      .map(({ spec }) => `https://${spec.rules[0].host}`)
    const settings = manifests.find(({ kind }) => kind === 'ConfigMap')?.data
    t.same(hosts, [settings?.PUBLIC_URL])
  })

  t.test('a missing value is refused by its name', async (t) => {
    t.match((await run('')).stderr, /image\.repository: is required/)
    const { stderr } = await run(JSON.stringify({ image, ingress: { enabled: true } }))
    t.match(stderr, /ingress\.host: is required/)
  })

  t.test('the cluster lets migrate and doctor work', { skip: noPostgres }, async (t) => {
    const { find, manifests } = await render(cluster)
    const { initdb } = find('Cluster postgram-db').spec.bootstrap
    const data = join(await serverFolder(), 'data')
    await initialise(data)
    const server = await startServer(data, ['fsync = off'])
    const admin = connect(server.urlOf('postgres', 'postgres'), { max: 1 })
    t.teardown(() => admin.end())
    // In the order of CloudNativePG.
    for (const statement of [
      `create role ${initdb.owner} login`,
      ...initdb.postInitSQL,
      `create database ${initdb.database} owner ${initdb.owner}`,
    ]) {
      await admin.unsafe(statement)
    }
    const { env } = podsOf(manifests).migrate?.containers[0] ?? {}
    const addressOf = (name: string) =>
      env
        ?.find((variable) => variable.name === name)
        ?.value?.replace(/\$\(\w+\)/, 'secret')
        .replace('postgram-db-rw:5432', new URL(server.urlOf('postgres', 'postgres')).host)
        .replace(/\?sslrootcert=.*/, '') ?? ''
    const addresses = {
      DATABASE_URL: addressOf('DATABASE_URL'),
      MIGRATE_DATABASE_URL: addressOf('MIGRATE_DATABASE_URL'),
    }
    t.same(await runCommand(['migrate'], addresses), { code: 0, stdout: '', stderr: '' })
    const { stdout } = await runCommand(['doctor'], {
      ...addresses,
      SECRET_KEY: Buffer.alloc(32).toString('base64'),
    })
    const problems = stdout.split('\n').filter((line) => /^(PROBLEM|warning)/i.test(line))
    t.same(
      problems.map((line) => line.replace(/:.*/, '')),
      ['PROBLEM worker', 'PROBLEM clock'],
    )
  })
})

t.test('chart: has the version of the package', async (t) => {
  const chart = await readText('src/docs/helm/postgram/Chart.yaml')
  const { version } = JSON.parse(await readText('package.json'))
  t.match(chart, `\nversion: ${version}\nappVersion: ${version}\n`)
})
