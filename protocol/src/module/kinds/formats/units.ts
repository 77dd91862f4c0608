import { unixDirectory } from './paths.ts';
import { allOf, byPattern, type Check, plainName } from './text.ts';

const unitNameRule = 'must be a unit name of letters, digits and : _ . \\ @ -';

/** Suffixes of other systemd unit types. */
const otherUnit = /\.(socket|device|mount|automount|swap|target|path|timer|slice|scope)$/;

export const systemdUnit: Check = (name) => {
  if (name.endsWith('.service'))
    return `must not end with ".service": write ${name.slice(0, -8) || 'the name before it'}`;
  const [, other] = otherUnit.exec(name) ?? [];
  if (other !== undefined)
    return `must be the name of a service: service-systemd manages .service units; declare .${other} units with unit-systemd`;
  return /^[A-Za-z0-9_][A-Za-z0-9:_.\\@-]{0,239}$/.test(name) ? undefined : unitNameRule;
};

/** A complete unit name. systemd creates devices and scopes itself, so unit files for them have no effect. */
export const systemdUnitFile: Check = allOf(
  byPattern(
    /\.(service|socket|mount|automount|swap|target|path|timer|slice)$/,
    'must end with the type of the unit: .service, .timer, .socket, .path, .mount, .automount, .swap, .target, or .slice',
  ),
  (name) =>
    /^[^@]*@\./.test(name)
      ? 'must not be a template: name an instance of it, or declare the file of the template with file-unix'
      : undefined,
  byPattern(/^[A-Za-z0-9_-][A-Za-z0-9:_.\\@-]{0,239}$/, unitNameRule),
);

export const unitSetting: Check = byPattern(
  /^[A-Z][A-Za-z0-9-]{0,63}\.[A-Z][A-Za-z0-9-]{0,127}$/,
  'must be a section and a key joined by a dot, such as Timer.OnCalendar',
);

export const unitSettingValue: Check = (text) => {
  if (/[\0\r]/.test(text)) return 'must not contain NUL characters or carriage returns';
  return text.split('\n').some((line) => line.trimEnd().endsWith('\\'))
    ? 'must not have a line that ends in a backslash, which would join the next line'
    : undefined;
};

/** A value of After= and Requires=: a unit name, with or without its suffix. */
export const unitReference: Check = byPattern(/^[A-Za-z0-9_-][A-Za-z0-9:_.\\@-]{0,254}$/, unitNameRule);

/** Refuses the ".service" suffix of systemd units, which OpenRC services do not have. */
export const openrcService: Check = (name) =>
  name.endsWith('.service') ? 'must be the name of an OpenRC service, without ".service"' : plainName(name);

export const windowsService: Check = byPattern(
  /^[^\x00-\x1f/\\]{1,256}$/,
  'must be 1 to 256 characters, without "/", "\\" and control characters',
);

/**
 * The working directory of a service. `~` is the home directory of its user. With a leading `-`, systemd ignores a
 * missing directory.
 */
export const systemdWorkingDirectory: Check = (path) =>
  path === '~' ? undefined : unixDirectory(path.startsWith('-') ? path.slice(1) : path);

/** cron ignores files in /etc/cron.d whose name contains a dot. */
export const cronName: Check = byPattern(/^[A-Za-z0-9_-]{1,128}$/, 'must be a name of letters, digits, "_" and "-"');

export const cronSchedule: Check = (text) =>
  /^@(reboot|yearly|annually|monthly|weekly|daily|midnight|hourly)$/.test(text) ||
  /^[0-9A-Za-z*/,~-]+( +[0-9A-Za-z*/,~-]+){4}$/.test(text)
    ? undefined
    : 'must be the five fields of cron (minute hour day month weekday), or @reboot, @hourly, @daily, @weekly, @monthly, @yearly';
