import type { FieldChange } from '@muster/protocol';
import type { ResourceBodies } from '@muster/protocol/module';
import type { ShadowEntry } from '../../host/accounts/account-files.ts';
import { runAccountTool, type ToolContext } from '../../host/accounts/account-tools.ts';
import { HostFailure } from '../../host/failure.ts';

/** The fields of an account that are in /etc/shadow: its password and its aging data. */

type Body = ResourceBodies['user-unix'];

/** The aging fields, with their index in `ShadowEntry.ageing` and the `chage` option that sets them. */
const ages = {
  password_min_days: { place: 1, option: '-m' },
  password_max_days: { place: 2, option: '-M' },
  password_warn_days: { place: 3, option: '-W' },
  password_inactive_days: { place: 4, option: '-I' },
  expires: { place: 5, option: '-E' },
} as const;
type Age = keyof typeof ages;
const ageNames = Object.keys(ages) as Age[];

/** The original values of the changed fields in /etc/shadow. */
export type SignInTouched = {
  /** The password field, with the day of its last change. */
  password?: { text: string; changed: string };
} & { [A in Age]?: string };

/** Reports whether the body declares a field in /etc/shadow. */
export const declaresSignIn = (body: Body): boolean =>
  body.password_hash != null || body.locked != null || ageNames.some((age) => body[age] != null);

/** Returns the changes to the account's line in /etc/shadow. */
export function signInChanges(body: Body, now: ShadowEntry | null): FieldChange[] {
  const changes: FieldChange[] = [];
  // useradd creates accounts without a password.
  const password = now === null ? '!' : now.password;
  const wanted = wantedPassword(body, password);
  if (body.password_hash != null && (password === null || withoutLock(password) !== withoutLock(wanted as string)))
    changes.push({ field: 'password_hash', from: null, to: null });
  if (body.locked != null && isLocked(password) !== body.locked)
    changes.push({ field: 'locked', from: now === null ? null : String(isLocked(password)), to: String(body.locked) });
  for (const age of ageNames) {
    const declared = body[age];
    if (declared == null) continue;
    const raw = rawAge(declared);
    const is = now?.ageing[ages[age].place] ?? '';
    if (now === null || is !== raw)
      changes.push({ field: age, from: now === null ? null : ageText(age, is), to: ageText(age, raw) });
  }
  return changes;
}

/** Returns the reason why the account cannot be unlocked as declared, or null if it can. */
export const unlockFault = (body: Body, now: ShadowEntry | null): string | null =>
  body.locked === false && body.password_hash == null && (now === null || /^!+$/.test(now.password ?? ''))
    ? `${body.name} has no password, so unlocking it would let anyone sign in without one; declare \`password_hash\``
    : null;

/** Returns the declared text of the password field, or null if it is not declared. */
export function wantedPassword({ password_hash, locked }: Body, now: string | null): string | null {
  if (password_hash == null && locked == null) return null;
  const text = password_hash ?? now ?? '';
  // Without `locked`, an account that was locked by hand stays locked. A lone "!" means that the account has no
  // password.
  const locks = locked ?? (/^!+[^!]/.test(now ?? '') && text.startsWith('$'));
  return locks ? (isLocked(text) ? text : `!${text}`) : locked === false ? withoutLock(text) : text;
}

const isLocked = (password: string | null): boolean => password?.startsWith('!') ?? false;
const withoutLock = (password: string): string => (/^!+[^!]/.test(password) ? password.replace(/^!+/, '') : password);

/** Returns the day or number in the format of /etc/shadow. */
const rawAge = (declared: string | number): string => {
  if (typeof declared === 'number') return declared === -1 ? '' : String(declared);
  return declared === 'never' ? '' : String(Date.parse(`${declared}T00:00:00Z`) / msPerDay);
};
const msPerDay = 86_400_000;

const ageText = (age: Age, raw: string): string => {
  if (age !== 'expires') return raw === '' ? '-1' : raw;
  const ms = Number(raw) * msPerDay;
  return raw === '' ? 'never' : ms < 8.64e15 ? new Date(ms).toISOString().slice(0, 10) : raw;
};

/** Records the fields in /etc/shadow that are about to change for the first time. */
export function touchSignIn(touched: SignInTouched, now: ShadowEntry, changing: ReadonlySet<string>): SignInTouched {
  const { password, ageing } = now;
  const record: SignInTouched = { ...touched };
  if (password !== null && (changing.has('password_hash') || changing.has('locked')))
    record.password ??= { text: password, changed: ageing[0] ?? '' };
  for (const age of ageNames) if (changing.has(age)) record[age] ??= ageing[ages[age].place] ?? '';
  return record;
}

/** Returns the changes that restore the original fields. The report does not contain the password. */
export function signInBack(touched: SignInTouched, now: ShadowEntry): FieldChange[] {
  const changes: FieldChange[] = [];
  const { password } = touched;
  if (password !== undefined && (now.password !== password.text || now.ageing[0] !== password.changed))
    changes.push({ field: 'password_hash', from: null, to: null });
  for (const age of ageNames) {
    const was = touched[age];
    const is = now.ageing[ages[age].place] ?? '';
    if (was !== undefined && was !== is) changes.push({ field: age, from: ageText(age, is), to: ageText(age, was) });
  }
  return changes;
}

/** Sets the declared fields of an existing account. */
export async function applySignIn(body: Body, now: ShadowEntry, context: ToolContext): Promise<void> {
  const changing = new Set(signInChanges(body, now).map(({ field }) => field));
  if (changing.has('password_hash') || changing.has('locked')) {
    const fault = unlockFault(body, now);
    if (fault !== null) throw new HostFailure(fault);
    await setPassword(body.name, now.password, wantedPassword(body, now.password) as string, context);
  }
  const values = ageNames.filter((age) => changing.has(age));
  await setAges(
    body.name,
    values.flatMap((age) => [ages[age].option, forTool(rawAge(body[age] as string | number))]),
    context,
  );
}

/** Restores the original fields of an account. */
export async function restoreSignIn(
  name: string,
  touched: SignInTouched,
  now: ShadowEntry,
  context: ToolContext,
): Promise<void> {
  const options: string[] = [];
  const { password } = touched;
  if (password !== undefined) {
    if (password.text !== now.password) await setPassword(name, now.password, password.text, context);
    options.push('-d', forTool(password.changed));
  }
  for (const age of ageNames) {
    const was = touched[age];
    if (was !== undefined && was !== now.ageing[ages[age].place]) options.push(ages[age].option, forTool(was));
  }
  await setAges(name, options, context);
}

/** Returns a number as `chage` expects it: -1 for an empty field. */
export const forTool = (raw: string | undefined): string => (/^\d+$/.test(raw ?? '') ? (raw as string) : '-1');

async function setAges(name: string, options: readonly string[], context: ToolContext): Promise<void> {
  if (options.length > 0) await runAccountTool('chage', [...options, '--', name], context);
}

/** Sets the password field. Only lock changes and values that are not secret appear in the process list. */
export async function setPassword(
  name: string,
  now: string | null,
  wanted: string,
  context: ToolContext,
): Promise<void> {
  if (now !== null && wanted === `!${now}`) return runAccountTool('usermod', ['-L', '--', name], context);
  if (now === `!${wanted}` && wanted !== '') return runAccountTool('usermod', ['-U', '--', name], context);
  if (/^[!*]*$/.test(wanted)) return runAccountTool('usermod', ['-p', wanted, '--', name], context);
  return runAccountTool('chpasswd', ['-e'], context, `${name}:${wanted}\n`);
}
