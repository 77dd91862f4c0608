import { putSetting } from '../../store/queries/settings.ts';
import { statement } from '../../store/transaction.ts';
import { type Context, seconds } from './context.ts';

/** Shows that the database takes writes, by one that is as small as can be. @throws what the database says otherwise */
export async function proveWritable({ db, now }: Context): Promise<void> {
  const beat = { key: 'last_upkeep', value: String(seconds(now())) };
  await db.write({ name: 'health/beat', statements: [statement(putSetting, beat)] });
}
