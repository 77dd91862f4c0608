import { z } from 'zod';
import { nameParams, optional, pageQuery, textMap, unixSeconds } from './definition/fields.ts';
import { route } from './definition/route.ts';
import { operatorId } from './operators/operators.ts';

export const moduleSchema = z
  .strictObject({ name: z.string(), uploaded_at: unixSeconds, uploaded_by: z.string() })
  .meta({ id: 'Module' });
export type Module = z.infer<typeof moduleSchema>;
const moduleExample: Module = { name: 'motd', uploaded_at: 1795000000, uploaded_by: operatorId };

export const moduleFileSchema = z
  .strictObject({
    path: z.string().describe('path in the folder of the module'),
    sha256: z.string(),
    size: z.number().int().describe('bytes'),
    executable: z.boolean(),
  })
  .meta({ id: 'ModuleFile' });

export const moduleWithContentSchema = moduleSchema
  .extend({
    content: z.string(),
    revision: z.number().int(),
    requires: z.array(z.string()).describe('names of the modules that this revision requires'),
    required_by: z.array(z.string()).describe('names of up to 20 modules that require the module'),
    files: z.array(moduleFileSchema).optional().describe('files next to the module; absent if it has none'),
  })
  .meta({ id: 'ModuleWithContent' });

const contentExample = [
  'name: motd',
  'supports: [{ platform: linux }]',
  'resources:',
  '  - id: motd',
  '    resource: { file-unix: { path: /etc/motd, content: "Welcome\\n", mode: "0644" } }',
  '',
].join('\n');

export const faultSchema = z
  .strictObject({
    path: z.string().describe('JSON pointer'),
    message: z.string(),
    line: z.number().int().optional(),
    column: z.number().int().optional(),
  })
  .meta({ id: 'Fault' });

/** Maximum size of a body that contains a module, in bytes. JSON escaping can double the size of the module. */
export const moduleBodyLimit = 2 * 1024 * 1024 * 2 + 65_536;

const revisionQuery = z
  .string()
  .regex(/^\d{1,9}$/, 'must be a whole number')
  .transform(Number)
  .optional();

export const listModules = route({
  id: 'listModules',
  method: 'GET',
  path: '/modules',
  tag: 'Modules',
  summary: 'List modules',
  access: 'operator',
  query: z.strictObject(pageQuery(1000, 1000)),
  paged: true,
  answers: { 200: z.array(moduleSchema) },
  errors: [],
  example: { answer: [moduleExample] },
});

export const filesOf = optional(z.number().int().min(1).max(2_147_483_647)).describe(
  'revision whose files belong to the text; default: the newest',
);

export const uploadModule = route({
  id: 'uploadModule',
  method: 'POST',
  path: '/modules',
  tag: 'Modules',
  summary: 'Upload a module, or a new revision of a module',
  description:
    'A JSON body contains only the text of the module, which keeps the files of its newest revision, or of the revision `files_of`. An `application/gzip` body is a tar archive of the module’s folder with `module.yml` at its top level, which declares the name.',
  access: 'operator',
  archive: true,
  body: z.strictObject({
    name: z.string().describe('must equal the name in `content`'),
    content: z.string().describe('YAML'),
    files_of: filesOf,
  }),
  bodyLimit: moduleBodyLimit,
  answers: { 201: moduleSchema },
  errors: ['module_invalid', 'module_not_found'],
  example: { body: { name: 'motd', content: contentExample }, answer: moduleExample },
});

export const getModule = route({
  id: 'getModule',
  method: 'GET',
  path: '/modules/{name}',
  tag: 'Modules',
  summary: 'Show a module with its content',
  access: 'operator',
  params: nameParams,
  query: z.strictObject({ revision: revisionQuery }),
  answers: { 200: moduleWithContentSchema },
  errors: ['module_not_found'],
  example: {
    params: { name: 'motd' },
    answer: {
      ...moduleExample,
      content: contentExample,
      revision: 1,
      requires: [],
      required_by: [],
      files: [{ path: 'files/banner.txt', sha256: '0f'.repeat(32), size: 8, executable: false }],
    },
  },
});

export const getModuleFile = route({
  id: 'getModuleFile',
  method: 'GET',
  path: '/modules/{name}/files',
  tag: 'Modules',
  summary: 'Download a file next to a module',
  access: 'operator',
  params: nameParams,
  query: z.strictObject({
    path: z.string().max(1024).describe('path in the folder of the module'),
    revision: revisionQuery,
  }),
  answers: { 200: z.string() },
  media: { 200: 'application/octet-stream' },
  errors: ['module_not_found', 'module_file_not_found'],
  example: { params: { name: 'motd' }, query: { path: 'files/banner.txt' }, answer: 'Welcome\n' },
});

export const listModuleRevisions = route({
  id: 'listModuleRevisions',
  method: 'GET',
  path: '/modules/{name}/revisions',
  tag: 'Modules',
  summary: 'List the revisions of a module, newest first',
  access: 'operator',
  params: nameParams,
  query: z.strictObject(pageQuery(50, 500)),
  paged: true,
  answers: {
    200: z.array(
      z.strictObject({
        revision: z.number().int(),
        digest: z.string(),
        uploaded_at: unixSeconds,
        uploaded_by: z.string(),
      }),
    ),
  },
  errors: ['module_not_found'],
  example: {
    params: { name: 'motd' },
    answer: [{ revision: 1, digest: `sha256:${'0f'.repeat(32)}`, uploaded_at: 1795000000, uploaded_by: operatorId }],
  },
});

export const removeModule = route({
  id: 'removeModule',
  method: 'DELETE',
  path: '/modules/{name}',
  tag: 'Modules',
  summary: 'Remove a module',
  description: 'Machines keep its resources until their next apply.',
  access: 'operator',
  params: nameParams,
  answers: { 204: null },
  errors: ['module_not_found', 'module_in_use'],
  example: { params: { name: 'motd' } },
});

export const validateModule = route({
  id: 'validateModule',
  method: 'POST',
  path: '/modules/validate',
  tag: 'Modules',
  summary: 'Validate a module without storing it',
  access: 'operator',
  body: z.strictObject({ content: z.string(), files_of: filesOf }),
  bodyLimit: moduleBodyLimit,
  answers: {
    200: z.strictObject({ valid: z.boolean(), faults: z.array(faultSchema), warnings: z.array(faultSchema) }),
  },
  errors: ['module_not_found'],
  example: { body: { content: contentExample }, answer: { valid: true, faults: [], warnings: [] } },
});

const positions = z.array(z.number().int()).describe('positions of resources in this list, from 0');
export const moduleOrderSchema = z
  .strictObject({
    modules: z.array(z.string()),
    resources: z
      .array(
        z.strictObject({
          module: z.string(),
          id: z.string().nullable(),
          type: z.string().nullable(),
          identity: z.string().nullable(),
          depends_on: positions.describe(
            'positions of the dependencies in this list, from 0; a trigger is also a dependency',
          ),
          reload_on: positions,
          restart_on: positions,
          rerun_on: positions,
        }),
      )
      .describe('resources in execution order'),
  })
  .meta({ id: 'ModuleOrder' });
export type ModuleOrder = z.infer<typeof moduleOrderSchema>;

export const orderModules = route({
  id: 'orderModules',
  method: 'POST',
  path: '/modules/deps',
  tag: 'Modules',
  summary: 'Show the execution order and the dependencies of the resources in modules',
  description:
    'With `agent`, or with `attributes` and `tags`, the modules are resolved together for that agent, without the modules of its assignments. Otherwise, expressions are not evaluated, and a resource whose variants differ has no type or identity.',
  access: 'operator',
  body: z.strictObject({
    modules: z.array(z.string().max(128)).min(1).max(256),
    agent: optional(z.string().max(64)).describe('node id, or the name of an approved agent'),
    attributes: optional(z.record(z.string().max(255), z.string().max(4096))),
    tags: optional(textMap),
    parameters: optional(z.record(z.string(), z.record(z.string(), z.json()))),
  }),
  answers: { 200: moduleOrderSchema },
  errors: ['unknown_module', 'agent_not_found', 'module_unresolved', 'module_conflict'],
  example: {
    body: { modules: ['motd'], attributes: { platform: 'linux' } },
    answer: {
      modules: ['motd'],
      resources: [
        {
          module: 'motd',
          id: 'motd',
          type: 'file-unix',
          identity: '/etc/motd',
          depends_on: [],
          reload_on: [],
          restart_on: [],
          rerun_on: [],
        },
      ],
    },
  },
});
