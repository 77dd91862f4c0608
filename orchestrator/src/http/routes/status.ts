import { protocolVersion } from '@muster/protocol/wire';
import { listAudit } from '../../domain/audit.ts';
import type { Context } from '../../domain/context.ts';
import type { Handlers } from '../handlers.ts';

/** @param well whether the database answers and takes writes */
export function statusHandlers(
  context: Context,
  about: { publicKey: string; version: string; well: () => boolean | Promise<boolean> },
) {
  return {
    getStatus: async () => ({
      status: (await about.well()) ? ('ok' as const) : ('degraded' as const),
      protocol_version: protocolVersion,
      public_key: about.publicKey,
      version: about.version,
    }),
    listAudit: ({ query }) => listAudit(context, query),
  } satisfies Partial<Handlers>;
}
