/** One thing that was looked at. */
export interface Finding {
  /** What it is about. */
  area: 'here' | 'orchestrator' | 'fleet' | 'machine';
  /** Stable, snake_case: what was looked at. */
  check: string;
  verdict: 'ok' | 'warning' | 'problem';
  what: string;
  /** Why it matters; null when all is well. */
  why: string | null;
  /** What to type or do; null when there is nothing. */
  remedy: string | null;
}

type Area = Finding['area'];

/** Makes findings of one area. */
export const findingsOf = (area: Area) => ({
  ok: (check: string, what: string): Finding => ({ area, check, verdict: 'ok', what, why: null, remedy: null }),
  warning: (check: string, what: string, why: string, remedy: string | null): Finding => ({
    area,
    check,
    verdict: 'warning',
    what,
    why,
    remedy,
  }),
  problem: (check: string, what: string, why: string, remedy: string | null): Finding => ({
    area,
    check,
    verdict: 'problem',
    what,
    why,
    remedy,
  }),
});

/** A file or directory as it was found. */
export interface Place {
  path: string;
  /** What is in it, for people. */
  what: string;
  isDirectory: boolean;
  /** Permission bits; null: it is not there. */
  mode: number | null;
  uid: number;
}

const octal = (mode: number): string => mode.toString(8).padStart(4, '0');

/**
 * Whether only its owner can get at a file or directory.
 * @param uid who should own it
 */
export function judgePlace(area: Area, { path, what, isDirectory, mode, uid }: Place, owner: number): Finding | null {
  const { ok, problem } = findingsOf(area);
  if (mode === null) return null;
  if (uid !== owner)
    return problem(
      'file_owner',
      `${path} belongs to the user ${uid}, not ${owner}`,
      `It holds ${what}: whoever owns it can change it.`,
      `chown ${owner} ${path}`,
    );
  const wanted = isDirectory ? 0o700 : 0o600;
  if ((mode & 0o077) === 0) return ok('file_mode', `${path} is ${octal(mode)}`);
  return problem(
    'file_mode',
    `${path} is ${octal(mode)}: others can get at it`,
    `It holds ${what}.`,
    `chmod ${octal(wanted).slice(1)} ${path}`,
  );
}

/** Room on a file system. */
export interface Disk {
  path: string;
  size: number;
  free: number;
}

export function judgeDisk(area: Area, { path, size, free }: Disk): Finding {
  const { ok, warning, problem } = findingsOf(area);
  const mib = Math.floor(free / 1024 ** 2);
  const told = `${mib} MiB are free where ${path} is, of ${Math.floor(size / 1024 ** 2)} MiB`;
  const remedy = `See what takes it: du -xh ${path} | sort -h | tail`;
  const why = 'Without room nothing can be written, and a full disk stops more than Muster.';
  if (mib < 64) return problem('disk', told, why, remedy);
  return mib < 512 || free < size / 50 ? warning('disk', told, why, remedy) : ok('disk', told);
}
