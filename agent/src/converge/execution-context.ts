import type { ResourceResult } from '@muster/protocol';
import type { Report } from '@muster/protocol/wire';
import type { Clock } from '../../../lib/src/clock.ts';
import type { ProcessIdentity } from '../../../lib/src/process-identity.ts';
import type { Link } from '../host/firewall/trial.ts';
import type { Journal } from '../journal/journal.ts';
import type { Json, ProviderLimits } from '../resources/provider/provider.ts';
import type { Downloads } from './downloads.ts';
import type { Publisher } from './report/publisher.ts';
import type { WantedContents } from './wanted-contents.ts';

export interface ExecutionContext {
  journal: Journal;
  publisher: Publisher;
  clock: Clock;
  limits: ProviderLimits;
  /** Key for plan digests, known only to this machine. */
  planKey: Uint8Array;
  crashPoint(name: string): void;
  /** Reports whether the agent must stop. The operation then pauses between two resources. */
  stopping(): boolean;
  /** Aborted when `stopping` becomes true. */
  stop: AbortSignal;
  /** Registers the process to kill if it outlasts the grace period of a stop; null if no process is running. */
  running(process: ProcessIdentity | null): void;
  /**
   * Registers an observing process, which is killed when the operation is canceled or the grace period of a stop
   * expires.
   */
  observing(operationId: string, process: ProcessIdentity): void;
  /** Streams the output of the running program to live viewers. */
  printed(source: { operation_id: string; resource: string }, stream: 'stdout' | 'stderr', piece: Buffer): void;
  readonly contents: Pick<WantedContents, 'use'>;
  readonly downloads: Pick<Downloads, 'use' | 'read'>;
  /** Environment with the proxy variables. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Logs a problem that does not affect a result. */
  warn(fields: object, message: string): void;
  /** The agent's connection to its orchestrator; null if it has none. */
  readonly link: Link | null;
  /** Called after a complete drift check with a fingerprint of each resource's state, by key. */
  measured(fingerprints: ReadonlyMap<string, string>): void;
  attempt: Attempt;
}

/**
 * State of an operation that the journal does not contain. Used if a journal write fails and this process retries the
 * operation.
 */
export interface Attempt {
  /** Whether this process already tried the operation and encountered a bug. */
  isRetry: boolean;
  /** Position of a step that certainly did not start, even if the journal contains its start. */
  notStarted: number | null;
  /** Result of a step that cannot be observed again, kept until it is journaled. */
  ended: { position: number; result: ResourceResult; outputs: Report[]; before: Json | null } | null;
}

export const firstAttempt = (): Attempt => ({ isRetry: false, notStarted: null, ended: null });

/** The agent is stopping. The operation resumes at the next start. */
export class Stopped extends Error {}
