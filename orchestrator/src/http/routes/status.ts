import { protocolVersion } from '@muster/protocol/wire';
import type { Handlers } from '../handlers.ts';

/** @param well whether the database answers and takes writes */
export function statusHandlers(about: { publicKey: string; version: string; well: () => boolean | Promise<boolean> }) {
  return {
    getStatus: async () => ({
      status: (await about.well()) ? ('ok' as const) : ('degraded' as const),
      protocol_version: protocolVersion,
      public_key: about.publicKey,
      version: about.version,
    }),
  } satisfies Partial<Handlers>;
}
