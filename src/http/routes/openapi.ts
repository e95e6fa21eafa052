import { Router } from '@koa/router'
import { toJsonSchema } from '@valibot/to-json-schema'
import type * as v from 'valibot'
import { type Code, catalogue } from '../../errors.ts'
import type { Endpoint } from '../endpoint.ts'
import { error, responseSchemas, type Schema, successes } from '../responses.ts'

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  schema: { type: 'string', maxLength: 255 },
  description: 'For 24 hours a request with the same key and body returns the original response.',
}

/** Returns the OpenAPI 3.1 document of endpoints. */
function openapi(endpoints: Endpoint[], publicUrl: string): Schema {
  const paths: Record<string, Record<string, Schema>> = {}
  for (const endpoint of endpoints) {
    const path = endpoint.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operation(endpoint) }
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Postgram', version: 'v1' },
    servers: [{ url: publicUrl }],
    security: [{ key: [] }],
    paths,
    components: {
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'sk_live_… or sk_test_…' },
      },
      schemas: { Error: { type: 'object', properties: { error } } },
    },
  }
}

function operation(endpoint: Endpoint): Schema {
  const pathParameters = [...endpoint.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  const isPost = endpoint.method === 'POST'
  const content = json(responseSchemas[endpoint.response])
  const { statuses = [200] } = endpoint
  const responses = statuses.map((status) => [status, { description: successes[status], content }])
  return {
    summary: endpoint.summary,
    description: `Needs the scope ${endpoint.scope}.`,
    parameters: [
      ...pathParameters,
      ...(isPost ? [idempotencyKey] : queryParameters(endpoint.query)),
    ],
    ...(isPost && {
      requestBody: { required: true, content: json(schemaOf(endpoint.request)) },
    }),
    responses: { ...Object.fromEntries(responses), ...refusals(endpoint.refusals) },
  }
}

function queryParameters(query?: v.GenericSchema): Schema[] {
  const { properties = {}, required = [] } = query ? schemaOf(query) : {}
  return Object.entries(properties as Record<string, Schema>).map(([name, schema]) => ({
    name,
    in: 'query',
    required: (required as string[]).includes(name),
    schema,
  }))
}

const json = (schema: Schema) => ({ 'application/json': { schema } })

/** The error codes of every endpoint. */
const commonRefusals: readonly Code[] = [
  'unauthorized',
  'insufficient_scope',
  'org_suspended',
  'rate_limited',
  'validation_error',
  'internal_error',
]

/** Returns the error responses by status, each described by its error codes. */
function refusals(own: readonly Code[]): Record<string, Schema> {
  const content = json({ $ref: '#/components/schemas/Error' })
  const byStatus = Map.groupBy(new Set([...commonRefusals, ...own]), (code) => catalogue[code][0])
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [status, { description: codes.join(', '), content }]),
  )
}

/** Converts a schema to JSON Schema, without rules that JSON Schema cannot express, such as cross-field checks. */
function schemaOf(schema: v.GenericSchema): Schema {
  const { $schema, ...rest } = toJsonSchema(schema, { errorMode: 'ignore', typeMode: 'input' })
  return rest
}

/** GET /openapi.json. */
export function openapiRouter(endpoints: Endpoint[], publicUrl: string): Router {
  const document = JSON.stringify(openapi(endpoints, publicUrl))
  const router = new Router()
  router.get('/openapi.json', (ctx) => {
    ctx.type = 'json'
    ctx.body = document
  })
  return router
}
