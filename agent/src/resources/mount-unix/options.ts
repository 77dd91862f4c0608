/** Compares the options in fstab(5) with those of a mounted file system. */

/** Flags that every file system supports, each with its opposite. The first flag in each pair is the default. */
const pairs = [
  ['rw', 'ro'],
  ['exec', 'noexec'],
  ['suid', 'nosuid'],
  ['dev', 'nodev'],
] as const;
const atimes = ['relatime', 'noatime', 'strictatime'] as const;
/** Options that imply others, unless a later option overrides them; see mount(8). */
const implied: Readonly<Record<string, readonly string[]>> = {
  defaults: ['rw', 'exec', 'suid', 'dev'],
  ...Object.fromEntries(['user', 'users'].map((name) => [name, ['noexec', 'nosuid', 'nodev']])),
  ...Object.fromEntries(['owner', 'group'].map((name) => [name, ['nosuid', 'nodev']])),
};

const listOf = (options: string): string[] => options.split(',').filter(Boolean);

/** Returns the flags that result from these options: one from each pair, and the declared atime option. */
function flagsOf(options: string): string[] {
  const all = listOf(options).flatMap((option) => [...(implied[option] ?? []), option]);
  const flags = pairs.map((pair) => all.findLast((option) => pair.includes(option as never)) ?? pair[0]);
  const atime = all.findLast((option) => atimes.includes(option as never));
  return atime === undefined ? flags : [...flags, atime];
}

export const isBind = (options: string): boolean => listOf(options).some((option) => /^r?bind$/.test(option));

/** Returns the options for a remount: all flags, so that flags that are no longer declared are reset. */
export const remountOptions = (options: string): string =>
  [...(isBind(options) ? ['bind'] : []), ...flagsOf(options), ...(hasAtime(options) ? [] : ['relatime'])].join(',');

const hasAtime = (options: string): boolean => listOf(options).some((option) => atimes.includes(option as never));

/** Options of tmpfs that a remount can change. */
const tmpfsLimits = ['size', 'nr_inodes'];
/** Bytes. The kernel rounds sizes up to whole pages, which are at most 64 KiB. */
const page = 65_536;

/**
 * Parses a size such as `64m` into bytes, rounded up to whole pages. Returns null if the size is relative or invalid.
 */
function sizeOf(text: string): number | null {
  const [, digits, unit = ''] = /^(\d{1,15})([kmgt]?)$/i.exec(text) ?? [];
  if (digits === undefined) return null;
  const bytes = Number(digits) * 1024 ** ' kmgt'.indexOf(unit.toLowerCase() || ' ');
  return Math.ceil(bytes / page) * page;
}

const settingOf = (options: string, name: string): string | null =>
  listOf(options)
    .findLast((option) => option.startsWith(`${name}=`))
    ?.slice(name.length + 1) ?? null;

/**
 * Returns the options in which a mounted file system differs from the declared ones. Compares only options whose live
 * form is known: the kernel omits, renames, or adds most others.
 */
export function differingOptions(
  declared: string,
  live: { type: string; options: string; ownOptions: string },
): { from: string; to: string } | null {
  const there = new Set(listOf(isBind(declared) ? live.ownOptions : live.options));
  const flags = flagsOf(declared);
  const isSet = (flag: string): boolean => {
    const pair = pairs.find((each) => each.includes(flag as never));
    if (pair === undefined)
      return flag === 'strictatime' ? !there.has('relatime') && !there.has('noatime') : there.has(flag);
    return flag === pair[0] ? !there.has(pair[1]) : there.has(flag);
  };
  const wanted = flags.filter((flag) => !isSet(flag));
  const found = wanted.map((flag) => oppositeOf(flag, there));
  if (live.type === 'tmpfs')
    for (const name of tmpfsLimits) {
      const [to, from] = [settingOf(declared, name), settingOf(live.options, name)];
      const [size, now] = [sizeOf(to ?? ''), sizeOf(from ?? '')];
      if (size === null || now === null || size === now) continue;
      wanted.push(`${name}=${to}`);
      found.push(`${name}=${from}`);
    }
  return wanted.length === 0 ? null : { from: found.join(','), to: wanted.join(',') };
}

function oppositeOf(flag: string, there: ReadonlySet<string>): string {
  const pair = pairs.find((each) => each.includes(flag as never));
  if (pair !== undefined) return flag === pair[0] ? pair[1] : pair[0];
  return atimes.find((each) => there.has(each)) ?? 'strictatime';
}
