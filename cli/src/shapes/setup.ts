import {
  operatorSchema,
  removedOperatorSchema,
  signInSessionSchema,
  statusSchema,
  unixSeconds,
} from '@muster/protocol/http';
import { z } from 'zod';
import { doneTo, prints, type Shapes } from './shape.ts';

const publicKey = z.string().regex(/^[0-9a-f]{64}$/);
const profile = z.strictObject({
  name: z.string(),
  url: z.string(),
  key_file: z.string().nullable().describe('null for the default key'),
});

export const shapes: Shapes = {
  status: prints(statusSchema.extend({ url: z.string() }).meta({ id: 'StatusAt' })),
  login: prints(
    operatorSchema
      .pick({ operator_id: true, username: true, role: true })
      .extend({ url: z.string(), expires_at: unixSeconds }),
  ),
  logout: prints(z.strictObject({ url: z.string() })),
  'sessions list': prints(z.array(signInSessionSchema)),
  'sessions end': prints(z.strictObject({ ended: z.number().describe('number of ended sessions') })),
  'operator init': prints(
    z.strictObject({
      public_key: publicKey,
      operator_id: z.string(),
      key_file: z.string(),
      former_key_file: z.string().nullable(),
    }),
  ),
  'operator passphrase': prints(z.strictObject({ key_file: z.string(), passphrase: z.boolean() })),
  'operator whoami': prints(
    z.union([
      operatorSchema
        .extend({ public_key: publicKey, key_file: z.string(), url: z.string() })
        .meta({ id: 'OperatorHere' }),
      z.strictObject({ public_key: publicKey }).describe('with --public-key'),
    ]),
  ),
  'operator list': prints(z.array(operatorSchema)),
  'operator show': prints(
    z.union([operatorSchema.describe('for one operator'), z.array(operatorSchema).describe('for several')]),
  ),
  'operator add': prints(operatorSchema),
  'operator remove': prints(
    z.strictObject({
      removed: z.array(z.string()),
      ended: z.array(removedOperatorSchema).describe('for each removed operator'),
    }),
  ),
  'profile update': prints(profile),
  'profile create': prints(profile),
  'profile list': prints(
    z.array(
      profile.extend({ current: z.boolean(), fingerprint: z.string().nullable().describe('trusted certificate') }),
    ),
  ),
  'profile use': prints(profile),
  'profile remove': doneTo('removed'),
};
