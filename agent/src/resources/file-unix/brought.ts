import type { Brought } from '../provider.ts';

const unitDirectory = /^\/(etc|run|usr\/lib|usr\/local\/lib|lib)\/systemd\/system\/|^\/etc\/init\.d\//;
const programDirectory = /^\/(usr\/(local\/)?)?s?bin\/|^\/opt\//;

/** What a file at this path may bring that others wait for: it may be a unit of systemd, a source of packages, or a program. */
export function broughtBy(path: string): readonly Brought[] {
  if (unitDirectory.test(path)) return ['units'];
  if (path.startsWith('/etc/apt/')) return ['packages'];
  return programDirectory.test(path) ? ['programs'] : [];
}
