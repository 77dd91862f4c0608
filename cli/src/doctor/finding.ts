import { bytesText } from '../../../client/src/byte-text.ts';
/** The result of a check. */
export interface Finding {
  area: 'here' | 'orchestrator' | 'fleet' | 'machine';
  /** Stable name of the check, in snake_case. */
  check: string;
  verdict: 'ok' | 'warning' | 'problem';
  what: string;
  /** Why the finding matters; null for `ok`. */
  why: string | null;
  /** What to do; null for `ok`. */
  remedy: string | null;
}

type Area = Finding['area'];

/** Command that shows why the orchestrator is in its current state. It must run on the orchestrator's machine. */
export const orchestratorLog = 'journalctl -u muster-orchestrator -n 50';

/** Returns functions that create findings for one area. Each finding that is not `ok` has a remedy. */
export const findingsOf = (area: Area) => ({
  ok: (check: string, what: string): Finding => ({ area, check, verdict: 'ok', what, why: null, remedy: null }),
  warning: (check: string, what: string, why: string, remedy: string): Finding => ({
    area,
    check,
    verdict: 'warning',
    what,
    why,
    remedy,
  }),
  problem: (check: string, what: string, why: string, remedy: string): Finding => ({
    area,
    check,
    verdict: 'problem',
    what,
    why,
    remedy,
  }),
});

export interface PathFacts {
  path: string;
  /** Describes the content, for messages. */
  what: string;
  isDirectory: boolean;
  /** Permission bits; null if the path does not exist. */
  mode: number | null;
  uid: number;
}

const octal = (mode: number): string => mode.toString(8).padStart(4, '0');

/**
 * Checks that only the owner has access.
 * @param owner UID of the expected owner
 */
export function judgePermissions(
  area: Area,
  { path, what, isDirectory, mode, uid }: PathFacts,
  owner: number,
): Finding | null {
  const { ok, problem } = findingsOf(area);
  if (mode === null) return null;
  if (uid !== owner)
    return problem(
      'file_owner',
      `${path} belongs to the user ${uid}, not ${owner}`,
      `It contains ${what}, and its owner can change it.`,
      `chown ${owner} ${path}`,
    );
  const expectedMode = isDirectory ? 0o700 : 0o600;
  if ((mode & 0o077) === 0) return ok('file_mode', `${path} is ${octal(mode)}`);
  return problem(
    'file_mode',
    `${path} is ${octal(mode)}: other users have access`,
    `It contains ${what}.`,
    `chmod ${octal(expectedMode).slice(1)} ${path}`,
  );
}

/** Disk space in bytes. */
export interface Disk {
  path: string;
  size: number;
  free: number;
}

export function judgeDisk(area: Area, { path, size, free }: Disk): Finding {
  const { ok, warning, problem } = findingsOf(area);
  const mib = Math.floor(free / 1024 ** 2);
  const message = `${bytesText(free)} of ${bytesText(size)} are free on the disk of ${path}`;
  const remedy = `To see what uses the space: du -xh ${path} | sort -h | tail`;
  const why = 'On a full disk, all writes fail, including those of other programs.';
  if (mib < 64) return problem('disk', message, why, remedy);
  return mib < 512 || free < size / 50 ? warning('disk', message, why, remedy) : ok('disk', message);
}
