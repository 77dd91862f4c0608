import { z } from 'zod';

const seconds = z.number().int().min(1).max(300);
const common = {
  module: z.string(),
  /** Whether the check contains a secret. If it does, its details are never shown. */
  sensitive: z.boolean(),
  /** Time limit in seconds. */
  timeout: seconds,
};
/** A check after an apply, as the agent receives it. */
export const verificationSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('http'),
    ...common,
    url: z.string(),
    status: z.number().int().min(100).max(599),
  }),
  /** Without a host, the check connects to the agent's own machine. */
  z.strictObject({
    type: z.literal('tcp'),
    ...common,
    host: z.string().nullable(),
    port: z.number().int().min(1).max(65_535),
  }),
  z.strictObject({ type: z.literal('command'), ...common, command: z.string() }),
]);

export type Verification = z.infer<typeof verificationSchema>;
