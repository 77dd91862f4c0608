import { pythonVersion } from '@muster/protocol/python-version';

/** Compares versions of Python packages with specifiers such as `>=1.2,<2`, as PEP 440 defines it. */

export interface Specifier {
  operator: (typeof operators)[number];
  version: string;
}

const operators = ['~=', '===', '==', '!=', '<=', '>=', '<', '>'] as const;

/**
 * Parses specifiers, such as `>=1.2, <2`, or an empty text for any version.
 * @returns null if the text has another form
 */
export function parseSpecifiers(text: string): Specifier[] | null {
  if (text.trim() === '') return [];
  const specifiers: Specifier[] = [];
  for (const part of text.split(',')) {
    const trimmed = part.trim();
    const operator = operators.find((one) => trimmed.startsWith(one));
    const version = trimmed.slice(operator?.length ?? 0).trim();
    if (operator === undefined || !isOperand(operator, version)) return null;
    specifiers.push({ operator, version });
  }
  return specifiers;
}

function isOperand(operator: Specifier['operator'], version: string): boolean {
  if (operator === '===') return /^[A-Za-z0-9.!+_*-]{1,128}$/.test(version);
  const isPattern = version.endsWith('.*');
  const parsed = pythonVersion(isPattern ? version.slice(0, -2) : version);
  if (parsed === null) return false;
  const isEquality = operator === '==' || operator === '!=';
  if (isPattern) return isEquality && /^(?:\d+!)?[\d.]+$/.test(parsed.normal);
  return (parsed.local === null || isEquality) && (operator !== '~=' || partsOf(parsed.normal).release.length > 1);
}

/** Reports whether an installed version satisfies all specifiers. An installed pre-release satisfies them as well. */
export const satisfies = (installed: string, specifiers: readonly Specifier[]): boolean =>
  specifiers.every((specifier) => matches(installed, specifier));

function matches(installed: string, { operator, version }: Specifier): boolean {
  if (operator === '===') return installed.toLowerCase() === version.toLowerCase();
  const found = pythonVersion(installed)?.normal;
  if (found === undefined) return false;
  if (version.endsWith('.*')) return hasPrefix(found, version.slice(0, -2)) === (operator === '==');
  const wanted = pythonVersion(version)?.normal;
  if (wanted === undefined) return false;
  const [one, other] = [partsOf(found), partsOf(wanted)];
  const open = { ...one, local: other.local === null ? null : one.local };
  const order = compareParts(open, other);
  const hasSameBase = compareParts(baseOf(one), baseOf(other)) === 0;
  switch (operator) {
    case '==':
      return order === 0;
    case '!=':
      return order !== 0;
    case '>=':
      return order >= 0;
    case '<=':
      return order <= 0;
    case '<':
      return order < 0 && !(isPrerelease(one) && !isPrerelease(other) && hasSameBase);
    case '>':
      return order > 0 && !(hasSameBase && (one.local !== null || (one.post !== null && other.post === null)));
    case '~=':
      return order >= 0 && hasPrefix(found, `${prefixEpoch(other)}${other.release.slice(0, -1).join('.')}`);
  }
}

/** Reports whether the release of a version begins with a prefix, as `1.2.3` begins with `1.2`. */
function hasPrefix(found: string, prefix: string): boolean {
  const [one, other] = [partsOf(found), partsOf(pythonVersion(prefix)?.normal ?? prefix)];
  return one.epoch === other.epoch && other.release.every((number, index) => number === (one.release[index] ?? '0'));
}

interface Parts {
  epoch: string;
  release: string[];
  /** Phase, which is in alphabetical order, and number. */
  pre: readonly [string, string] | null;
  post: string | null;
  dev: string | null;
  local: string | null;
}

/** Splits a version in the form of `PythonVersion.normal`. */
function partsOf(normal: string): Parts {
  const [, epoch = '0', release = '0', phase, number = '0', post, dev, local] =
    /^(?:(\d+)!)?([\d.]+?)(?:(a|b|rc)(\d+))?(?:\.post(\d+))?(?:\.dev(\d+))?(?:\+(.+))?$/.exec(normal) ?? [];
  return {
    epoch,
    release: release.split('.'),
    pre: phase === undefined ? null : [phase, number],
    post: post ?? null,
    dev: dev ?? null,
    local: local ?? null,
  };
}

const prefixEpoch = ({ epoch }: Parts): string => (epoch === '0' ? '' : `${epoch}!`);
const baseOf = (parts: Parts): Parts => ({ ...parts, pre: null, post: null, dev: null, local: null });
const isPrerelease = ({ pre, dev }: Parts): boolean => pre !== null || dev !== null;

/** Compares numbers as text, because they can exceed the safe integers. */
const compareNumbers = (one: string, other: string): number =>
  one.length - other.length || (one < other ? -1 : one > other ? 1 : 0);

function compareParts(one: Parts, other: Parts): number {
  return (
    compareNumbers(one.epoch, other.epoch) ||
    compareLists(one.release, other.release, '0', compareNumbers) ||
    comparePre(one, other) ||
    compareNullable(one.post, other.post, -1) ||
    compareNullable(one.dev, other.dev, 1) ||
    compareLocal(one.local, other.local)
  );
}

function compareLists<T>(one: readonly T[], other: readonly T[], filler: T, compare: (a: T, b: T) => number): number {
  for (let index = 0; index < Math.max(one.length, other.length); index++) {
    const order = compare(one[index] ?? filler, other[index] ?? filler);
    if (order !== 0) return order;
  }
  return 0;
}

/** @param absent order of a missing number: -1 before, 1 after all numbers */
function compareNullable(one: string | null, other: string | null, absent: -1 | 1): number {
  if (one === null || other === null) return one === other ? 0 : one === null ? absent : -absent;
  return compareNumbers(one, other);
}

/** A development release precedes the pre-releases, which precede the release. */
function comparePre(one: Parts, other: Parts): number {
  const rank = ({ pre, post, dev }: Parts): string =>
    pre !== null ? `1${pre[0]}` : post === null && dev !== null ? '0' : '2';
  const [first, second] = [rank(one), rank(other)];
  if (first !== second) return first < second ? -1 : 1;
  return compareNumbers(one.pre?.[1] ?? '0', other.pre?.[1] ?? '0');
}

function compareLocal(one: string | null, other: string | null): number {
  if (one === null || other === null) return one === other ? 0 : one === null ? -1 : 1;
  return compareLists(one.split('.'), other.split('.'), '', (a, b) => {
    const [isFirst, isSecond] = [/^\d+$/.test(a), /^\d+$/.test(b)];
    if (a === '' || b === '') return a.length - b.length;
    if (isFirst !== isSecond) return isFirst ? 1 : -1;
    return isFirst ? compareNumbers(a, b) : a < b ? -1 : a > b ? 1 : 0;
  });
}
