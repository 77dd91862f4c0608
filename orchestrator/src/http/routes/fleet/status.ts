import { protocolVersion } from '@muster/protocol/wire';
import type { DiskSpace } from '../../../domain/fleet/disk-space.ts';
import type { PeerTrouble } from '../../../domain/replicas/peer-troubles.ts';
import type { Handlers } from '../../server/handlers.ts';

export interface StatusSources {
  readonly publicKey: string;
  readonly version: string;
  readonly databaseKind: 'sqlite' | 'postgres';
  writable(): Promise<boolean>;
  secretsReadable(): boolean;
  samples(): { readonly trouble: string | null };
  disk(): DiskSpace | null;
  /** Null unless replicas notify each other through NATS. */
  bus(): Bus | null;
  /** Problems with other replicas to report to operators. */
  replicas(): readonly PeerTrouble[];
}

interface Bus {
  readonly isConnected: boolean;
  /** Names of the live replicas whose messages do not arrive. */
  readonly unheard: readonly string[];
}

const works = (bus: Bus | null): boolean => bus === null || (bus.isConnected && bus.unheard.length === 0);

export function statusHandlers(about: StatusSources) {
  return {
    getStatus: async () => {
      const reasons = [
        ...((await about.writable()) ? [] : ['database' as const]),
        ...(about.secretsReadable() ? [] : ['secrets_key' as const]),
        ...(about.samples().trouble === null ? [] : ['metrics' as const]),
        ...(about.disk()?.low ? ['disk' as const] : []),
        ...(works(about.bus()) ? [] : ['bus' as const]),
        ...(about.replicas().length > 0 ? ['replica' as const] : []),
      ];
      return {
        status: reasons.length === 0 ? ('ok' as const) : ('degraded' as const),
        protocol_version: protocolVersion,
        public_key: about.publicKey,
        version: about.version,
        reasons,
      };
    },
    getHealth: async () => {
      const disk = about.disk();
      const bus = about.bus();
      return {
        database: { kind: about.databaseKind, writable: await about.writable() },
        secrets_readable: about.secretsReadable(),
        metrics: { writable: about.samples().trouble === null, trouble: about.samples().trouble },
        disk: disk && {
          size_bytes: disk.size,
          free_bytes: disk.free,
          reserve_bytes: disk.reserve,
          low: disk.low,
        },
        bus: bus && { connected: bus.isConnected, unheard: [...bus.unheard] },
      };
    },
  } satisfies Partial<Handlers>;
}
