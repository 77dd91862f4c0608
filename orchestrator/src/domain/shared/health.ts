import { MusterError } from '@muster/protocol';
import { anyOperator } from '../../store/queries/operators.ts';
import { putSetting } from '../../store/queries/settings.ts';
import { statement } from '../../store/transaction.ts';
import { maxBeatAgeMs } from '../replicas/peer-watch.ts';
import { type Context, seconds } from './context.ts';

/** The orchestrator's health. Scheduled checks write it, and requests read it. */
export interface Health {
  /** Whether the last check found the key of every secret. */
  secretsReadable: boolean;
  /**
   * Whether the last test write succeeded and, for a replica, the last heartbeat is recent and the replica is not
   * draining.
   */
  readonly serves: boolean;
  /** Whether this process should get no new agents or requests, although it works. */
  draining: boolean;
  /** Reports whether the database responds and the last test write succeeded. */
  isWritable(): Promise<boolean>;
  /** Reports whether this process is writable and not draining. */
  isReady(): Promise<boolean>;
  /**
   * Performs a test write to the database. A replica changes no row, because the test writes of other replicas would
   * conflict with it.
   * @throws the database's error
   */
  proveWritable(): Promise<void>;
}

/**
 * Returns a state that counts as healthy until the first check.
 * @param beatAge milliseconds since the last heartbeat of this replica; null without replicas
 */
export function createHealth({ db, now }: Pick<Context, 'db' | 'now'>, beatAge: (() => number) | null = null): Health {
  let writable = true;
  const beats = () => beatAge === null || beatAge() < maxBeatAgeMs;
  return {
    secretsReadable: true,
    draining: false,
    get serves() {
      return writable && beats() && !this.draining;
    },
    async isReady() {
      return (await this.isWritable()) && !this.draining;
    },
    async isWritable() {
      try {
        await db.get(anyOperator, {});
        return writable && beats();
      } catch {
        return false;
      }
    },
    async proveWritable() {
      const beat = { key: 'last_upkeep', value: String(seconds(now())) };
      const test = beatAge === null ? statement(putSetting, beat) : statement(anyOperator, {});
      try {
        await db.write({ name: 'health/beat', statements: [test] });
        writable = true;
      } catch (error) {
        writable = false;
        throw error;
      }
      if (!beats())
        throw new MusterError('storage_unavailable', 'the database accepts no heartbeats from this replica');
    },
  };
}
