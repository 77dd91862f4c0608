import type { Database } from '../../store/database.ts';
import { claimReplicaKey, replicaKeys, type StoredKey } from '../../store/replicas.ts';
import { type Statement, statement } from '../../store/transaction.ts';

/** Compares the keys of this process with those of the other replicas. */

/**
 * Fingerprints of this process's keys; null for a key that it does not have or does not share with the other replicas.
 */
export interface KeyFingerprints {
  readonly identity: string;
  /** The key of the generated API certificate; null if the certificate is configured. */
  readonly api: string | null;
  readonly secrets: string | null;
}

/** This replica's keys differ from the fleet's, so agents, clients, or secrets would not work with it. */
class KeysDiffer extends Error {
  constructor(files: readonly string[], dataDir: string) {
    super(
      `the other replicas have different keys: copy ${files.join(', ')} from the data directory of one of them to ${dataDir}, as muster orchestrator share and join do. ` +
        'If the keys of this replica are correct, stop all replicas, and start this one once without replica.name.',
    );
    this.name = 'KeysDiffer';
  }
}

const files = { identity: 'identity.key', api: 'api.key and api.crt', secrets: 'secrets.keys' } as const;
const kinds = ['identity', 'api', 'secrets'] as const;

/**
 * Compares the keys. The keys of the first replica become the fleet's. If several replicas start at the same time, only
 * one of them sets the keys.
 * @throws KeysDiffer
 */
export async function requireFleetKeys(db: Database, own: KeyFingerprints, dataDir: string): Promise<void> {
  const compare = async () => requireSameKeys(await db.all(replicaKeys, {}), own, dataDir);
  // A refused replica must not set the fleet's keys of other kinds.
  await compare();
  await db.write({ name: 'replicas/claim keys', statements: claimKeys(own) });
  await compare();
}

/**
 * Compares this process's keys with those that the replicas have.
 * @throws KeysDiffer
 */
export function requireSameKeys(stored: readonly StoredKey[], own: KeyFingerprints, dataDir: string): void {
  const differing = kinds.filter((kind) =>
    stored.some((key) => key.kind === kind && isOther(kind, own[kind], key.fingerprint)),
  );
  if (differing.length > 0)
    throw new KeysDiffer(
      differing.map((kind) => files[kind]),
      dataDir,
    );
}

/**
 * Reports whether a replica uses a key other than the fleet's. For the API, the key may be missing, because a replica
 * with a configured certificate has none.
 */
const isOther = (kind: keyof KeyFingerprints, own: string | null, fleet: string): boolean =>
  own === null ? kind !== 'api' : own !== fleet;

/** Returns statements that make these keys the fleet's, except for kinds of which the fleet already has one. */
export const claimKeys = (own: KeyFingerprints): Statement[] =>
  kinds.flatMap((kind) => {
    const fingerprint = own[kind];
    return fingerprint === null ? [] : [statement(claimReplicaKey, { kind, fingerprint })];
  });
