import { z } from 'zod';

const seconds = z.number().int().min(1).max(300);
const common = {
  module: z.string(),
  /** It holds a secret: nothing of it is shown. */
  sensitive: z.boolean(),
  /** Seconds within which it must hold. */
  timeout: seconds,
};
/** One check after an apply, as its agent gets it. */
export const verificationSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('http'),
    ...common,
    url: z.string(),
    status: z.number().int().min(100).max(599),
  }),
  /** Without a host: the machine itself. */
  z.strictObject({
    type: z.literal('tcp'),
    ...common,
    host: z.string().nullable(),
    port: z.number().int().min(1).max(65_535),
  }),
  z.strictObject({ type: z.literal('command'), ...common, command: z.string() }),
]);

export type Verification = z.infer<typeof verificationSchema>;
