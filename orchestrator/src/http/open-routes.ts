import { moduleJsonSchema, moduleSchemaId } from '@muster/protocol/module';
import type { FastifyInstance } from 'fastify';
import { registerDocsPage } from './openapi/docs-page.ts';
import { printOpenApi } from './openapi/openapi.ts';

export interface OpenRoutesOptions {
  /** Reports whether `/readyz` returns success. */
  readonly ready?: () => boolean | Promise<boolean>;
  /** JSON Schemas for the configuration files, by path. */
  readonly configSchemas?: Readonly<Record<string, () => object>>;
  /** Product version, for the OpenAPI document. */
  readonly version: string;
}

/** Registers public routes outside the API: health checks and the API description. */
export function registerOpenRoutes(app: FastifyInstance, options: OpenRoutesOptions): void {
  const json = 'application/json';
  let openApi: string | null = null;
  app.get('/openapi.json', (_request, reply) => {
    openApi ??= JSON.stringify(printOpenApi(options.version));
    return reply.header('content-type', json).send(openApi);
  });
  let moduleSchema: string | null = null;
  app.get(moduleSchemaId, (_request, reply) => {
    moduleSchema ??= JSON.stringify(moduleJsonSchema());
    return reply.header('content-type', 'application/schema+json').send(moduleSchema);
  });
  for (const [path, schemaOf] of Object.entries(options.configSchemas ?? {})) {
    let schema: string | null = null;
    app.get(path, (_request, reply) => {
      schema ??= JSON.stringify(schemaOf());
      return reply.header('content-type', 'application/schema+json').send(schema);
    });
  }
  registerDocsPage(app);
  app.get('/healthz', (_request, reply) => reply.header('content-type', json).send('{"status":"ok"}'));
  app.get('/readyz', async (_request, reply) => {
    const ready = options.ready === undefined || (await options.ready());
    reply.code(ready ? 200 : 503).header('content-type', json);
    return reply.send(ready ? '{"status":"ready"}' : '{"status":"not_ready"}');
  });
}
