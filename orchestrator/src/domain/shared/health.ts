import { putSetting } from '../../store/queries/settings.ts';
import { statement } from '../../store/transaction.ts';
import { type Context, seconds } from './context.ts';

/** Proves that the database accepts writes. @throws the error of the database */
export async function proveWritable({ db, now }: Context): Promise<void> {
  const beat = { key: 'last_upkeep', value: String(seconds(now())) };
  await db.write({ name: 'health/beat', statements: [statement(putSetting, beat)] });
}
