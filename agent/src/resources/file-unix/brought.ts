import type { Brought } from '../provider/provider.ts';

const unitDirectory = /^\/(etc|run|usr\/lib|usr\/local\/lib|lib)\/systemd\/system\/|^\/etc\/init\.d\//;
/** Sources of apt and dnf, their settings, and the keys that they are trusted by. */
const sourceDirectory =
  /^\/(etc\/(apt|dnf|yum\.repos\.d|yum\/repos\.d|distro\.repos\.d|yum|pki\/rpm-gpg)|usr\/share\/keyrings)\/|^\/etc\/yum\.conf$/;
const programDirectory = /^\/(usr\/(local\/)?)?s?bin\/|^\/opt\//;

/** What a file at this path may bring that others wait for: it may be a unit of systemd, a source of packages, or a program. */
export function broughtBy(path: string): readonly Brought[] {
  if (unitDirectory.test(path)) return ['units'];
  if (sourceDirectory.test(path)) return ['packages'];
  return programDirectory.test(path) ? ['programs'] : [];
}
