import { z } from 'zod';

/** Schema of the agent's configuration file. Every key is optional. */
export const agentConfigSchema = z.strictObject({
  remote_terminal: z
    .strictObject({
      enabled: z.boolean().default(false),
      shell: z.string().max(4096).default('').describe('Shell to start; empty for the login shell of the user'),
      allow_operator_shell_override: z.boolean().default(false),
      max_sessions: z.int().min(1).max(10_000).default(100),
      user: z
        .string()
        .max(256)
        .regex(/^([A-Za-z0-9_][A-Za-z0-9_.@\\-]*\$?)?$/, 'must be the name of a user')
        .default('')
        .describe('User to run the shell as; empty for the user that the agent runs as'),
    })
    .prefault({}),
  metrics: z
    .strictObject({
      enabled: z.boolean().default(true),
      collection_interval: z.int().min(1).max(86_400).default(30).describe('Interval between samples, in seconds'),
    })
    .prefault({}),
  scripts: z
    .strictObject({
      time_limit: z
        .int()
        .min(1)
        .max(86_400)
        .default(1800)
        .describe('Time limit of one `apply` or `undo`, in seconds; the script is then stopped'),
    })
    .prefault({}),
  packages: z
    .strictObject({
      time_limit: z
        .int()
        .min(1)
        .max(86_400)
        .default(3600)
        .describe('Time limit of one transaction, in seconds; the package program is then requested to stop'),
      lock_timeout: z
        .int()
        .min(0)
        .max(86_400)
        .default(600)
        .describe('Maximum time to wait for the lock of apt or dpkg, in seconds'),
    })
    .prefault({}),
  discovery: z
    .strictObject({
      enabled: z
        .boolean()
        .nullable()
        .default(null)
        .describe('Whether the agent accepts discovery; null: only if it was started without an address'),
      port: z.int().min(1).max(65_535).default(4747).describe('UDP port for announcements'),
    })
    .prefault({}),
});

export const agentConfigSchemaId = '/schemas/agent.json';

/** Returns the JSON Schema of the agent's configuration file, for editors. */
export function agentConfigJsonSchema(): object {
  const schema = z.toJSONSchema(agentConfigSchema, { io: 'input' });
  return { ...schema, $id: agentConfigSchemaId, title: 'Configuration of a Muster agent' };
}
