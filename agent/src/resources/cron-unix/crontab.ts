/** Pure functions that render and parse files in /etc/cron.d. */

export interface Job {
  schedule: string;
  user: string;
  command: string;
}

const header = '# Written by Muster. Changes by hand are undone by the next apply.';

/** The environment of a job under any cron implementation, with the same search path as the agent's scripts. */
const settings = ['SHELL=/bin/sh', 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'];

/** Maximum command length in bytes. cron ignores a file that contains a longer one. */
export const longestCommand = 998;

export const renderJob = ({ schedule, user, command }: Job): string =>
  `${[header, ...settings, `${schedule.replaceAll(/ +/g, ' ')} ${user} ${escapeCommand(command)}`].join('\n')}\n`;

/**
 * Escapes a command. cron interprets an unescaped `%` as a line break and passes the text after the first one to the
 * command as its input. `\%` represents `%`, and `\\` represents `\`. Before any other character, a backslash is
 * literal.
 */
export const escapeCommand = (command: string): string =>
  command
    .trim()
    .replaceAll(/(\\+)(?=(.?))/gsu, (run, _all, next) => (run.length > 1 || next === '%' ? run + run : run))
    .replaceAll('%', '\\%');

const unescapeCommand = (text: string): string => text.replaceAll(/\\([\\%])/g, '$1');

/** A parsed file: its first job, and all lines that are neither that job nor comments. */
export interface Crontab {
  job: Job | null;
  others: string[];
}

export function parseCrontab(text: string): Crontab {
  let job: Job | null = null;
  const others: string[] = [];
  for (const line of text.split('\n').map((one) => one.trim())) {
    if (line === '' || line.startsWith('#')) continue;
    const found: Job | null = job === null ? parseLine(line) : null;
    if (found === null) others.push(line);
    else job = found;
  }
  return { job, others };
}

const jobLine = /^(@[a-z]+|\S+(?:[ \t]+\S+){4})[ \t]+(\S+)[ \t]+(.+)$/s;
const settingLine = /^["']?[A-Za-z_][A-Za-z0-9_]*["']?\s*=/;

function parseLine(line: string): Job | null {
  if (settingLine.test(line)) return null;
  const [, schedule, user, command] = jobLine.exec(line) ?? [];
  if (schedule === undefined || user === undefined || command === undefined) return null;
  return { schedule: schedule.replaceAll(/[ \t]+/g, ' '), user, command: unescapeCommand(command) };
}

interface Field {
  name: string;
  min: number;
  max: number;
  names: readonly string[];
}

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const days = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const fields: readonly Field[] = [
  { name: 'minute', min: 0, max: 59, names: [] },
  { name: 'hour', min: 0, max: 23, names: [] },
  { name: 'day of the month', min: 1, max: 31, names: [] },
  { name: 'month', min: 1, max: 12, names: months },
  { name: 'day of the week', min: 0, max: 7, names: days },
];

/**
 * Checks a schedule. cron ignores a file with an invalid schedule and reports it only in its log.
 * @returns the reason why the schedule is invalid, or null if it is valid
 */
export function scheduleFault(schedule: string): string | null {
  if (schedule.startsWith('@')) return null;
  const parts = schedule.split(/ +/);
  for (const [i, field] of fields.entries()) {
    const part = parts[i] ?? '';
    if (!part.split(',').every((item) => isItem(item, field)))
      return `"${part}" is not a ${field.name} that cron understands`;
  }
  return null;
}

function isItem(item: string, field: Field): boolean {
  const [, range = '', step] = /^([^/]*)(?:\/(.*))?$/.exec(item) ?? [];
  if (step !== undefined && !(/^\d{1,4}$/.test(step) && Number(step) > 0)) return false;
  if (range === '*') return true;
  const ends = range.split(/[-~]/).map((text) => numberOf(text, field));
  if (ends.length > 2 || ends.some((value) => value === null)) return false;
  // A single value must not have a step.
  if (ends.length === 1) return step === undefined;
  return (ends[0] as number) <= (ends[1] as number);
}

function numberOf(text: string, { min, max, names }: Field): number | null {
  const named = names.indexOf(text.toLowerCase());
  if (named >= 0) return named + min;
  if (!/^\d{1,3}$/.test(text)) return null;
  const value = Number(text);
  return value >= min && value <= max ? value : null;
}
