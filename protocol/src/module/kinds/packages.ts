import { formatted } from './field.ts';
import * as format from './format.ts';
import { defineKind, ensure, type Platform } from './kind.ts';

const version = formatted(
  'Absent: any version; latest: the newest the sources offer; or an exact version',
  format.packageVersion,
);

const packageKind = (program: string, platforms: readonly Platform[], name: format.Check) =>
  defineKind({
    description: `A package installed by ${program}`,
    platforms,
    required: { name: formatted('Name of the package', name) },
    optional: { version, ensure },
  });

export const packageKinds = {
  'package-apt': packageKind('apt', ['linux'], format.aptPackage),
  'package-dnf': packageKind('dnf', ['linux'], format.packageName),
  'package-brew': packageKind('Homebrew', ['macos', 'linux'], format.packageName),
  'package-choco': packageKind('Chocolatey', ['windows'], format.packageName),
  'package-winget': packageKind('winget', ['windows'], format.packageName),
};
