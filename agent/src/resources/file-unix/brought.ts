import type { Brought } from '../provider/provider.ts';

const unitDirectory = /^\/(etc|run|usr\/lib|usr\/local\/lib|lib)\/systemd\/system\/|^\/etc\/init\.d\//;
/** Matches the paths of sources, settings, and trusted keys for apt, dnf, zypper, and pacman. */
const sourceDirectory =
  /^\/(etc\/(apt|dnf|yum\.repos\.d|yum\/repos\.d|distro\.repos\.d|yum|zypp|pacman\.d|pki\/rpm-gpg)|usr\/share\/keyrings)\/|^\/etc\/(yum|pacman)\.conf$/;
const programDirectory = /^\/(usr\/(local\/)?)?s?bin\/|^\/opt\//;

/**
 * Returns the effects of a file at this path that other resources may wait for. The file may be a systemd unit, a
 * package source, or a program.
 */
export function broughtBy(path: string): readonly Brought[] {
  if (unitDirectory.test(path)) return ['units'];
  if (sourceDirectory.test(path)) return ['packages'];
  return programDirectory.test(path) ? ['programs'] : [];
}
