/**
 * Browsers, most specific first, because the user agents of Edge and Opera also contain `Chrome`, and that of Chrome
 * contains `Safari`.
 */
const browsers: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/Edg(e|A|iOS)?\//, 'Edge'],
  [/OPR\//, 'Opera'],
  [/Firefox\/|FxiOS\//, 'Firefox'],
  [/Chrom(e|ium)\/|CriOS\//, 'Chrome'],
  [/Safari\//, 'Safari'],
];
const systems: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/Android/, 'Android'],
  [/iPhone|iPad/, 'iOS'],
  [/Windows/, 'Windows'],
  [/Mac OS X/, 'macOS'],
  [/Linux|X11/, 'Linux'],
];

/**
 * Returns the name of a session's program, such as `Firefox on Linux`. A program can send any user agent, so the name
 * is only a hint.
 * @returns the user agent itself if it is not that of a known browser
 */
export function programName(userAgent: string | null): string {
  if (userAgent === null || userAgent === '') return 'Unknown program';
  const find = (list: typeof browsers) => list.find(([pattern]) => pattern.test(userAgent))?.[1];
  const browser = find(browsers);
  if (browser === undefined) return userAgent;
  const system = find(systems);
  return system === undefined ? browser : `${browser} on ${system}`;
}
