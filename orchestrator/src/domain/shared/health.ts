import { anyOperator } from '../../store/queries/operators.ts';
import { putSetting } from '../../store/queries/settings.ts';
import { statement } from '../../store/transaction.ts';
import { type Context, seconds } from './context.ts';

/** The orchestrator's health. Scheduled checks write it, and requests read it. */
export interface Health {
  /** Whether the last check found the key of every secret. */
  secretsReadable: boolean;
  /** Reports whether the database responds and the last test write succeeded. */
  isReady(): Promise<boolean>;
  /**
   * Performs a test write to the database.
   * @throws the database's error
   */
  proveWritable(): Promise<void>;
}

/** Returns a state that counts as healthy until the first check. */
export function createHealth({ db, now }: Pick<Context, 'db' | 'now'>): Health {
  let writable = true;
  return {
    secretsReadable: true,
    async isReady() {
      try {
        await db.get(anyOperator, {});
        return writable;
      } catch {
        return false;
      }
    },
    async proveWritable() {
      const beat = { key: 'last_upkeep', value: String(seconds(now())) };
      try {
        await db.write({ name: 'health/beat', statements: [statement(putSetting, beat)] });
        writable = true;
      } catch (error) {
        writable = false;
        throw error;
      }
    },
  };
}
