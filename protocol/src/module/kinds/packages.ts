import { pythonName } from '../../python-version.ts';
import { content } from './downloads/content.ts';
import { boolean, choice, formatted, text } from './field.ts';
import * as format from './format.ts';
import { defineKind, ensure, joined, type Platform } from './kind.ts';

const exactVersion = formatted(
  'An exact version, or latest for the newest version in the sources; default: any version',
  format.packageVersion,
);
const versionRange = formatted(
  'An exact version, a pattern such as 20.*, a lower bound such as >=20.1, latest for the newest version in the sources, or * for any version, the default',
  format.packageVersionRange,
);

const packageKind = (program: string, platforms: readonly Platform[], name: format.Check, example: string) =>
  defineKind({
    description: `A package installed by ${program}`,
    platforms,
    example,
    isSupported: false,
    required: { name: formatted('Name of the package', name) },
    optional: { version: exactVersion, ensure },
  });

const debFile = content('.deb file');
const rpmFile = content('.rpm file');

export const packageKinds = {
  'package-apt': defineKind({
    description: 'A package installed by apt',
    platforms: ['linux'],
    example: 'name: nginx-light',
    required: { name: formatted('Name of the package', format.aptPackage) },
    optional: {
      version: versionRange,
      recommends: boolean('Whether packages that it recommends are installed with it; default: as configured in apt'),
      hold: boolean(
        'Whether the package is on hold, so that other upgrades do not change it; default: as on the machine',
      ),
      ...debFile.fields,
      ensure,
    },
    ...debFile.rules,
  }),
  'package-dnf': defineKind({
    description: 'A package installed by dnf',
    platforms: ['linux'],
    example: 'name: nginx\nversion: latest',
    required: { name: formatted('Name of the package', format.dnfPackage) },
    optional: {
      version: versionRange,
      hold: boolean(
        'Whether dnf’s versionlock plugin locks the package at its version, so that other upgrades do not change it; default: as on the machine',
      ),
      from: formatted(
        'Id of the repository from which the package is installed or changed, even if it is disabled; default: all enabled ones',
        format.dnfRepositoryId,
      ),
      ...rpmFile.fields,
      ensure,
    },
    ...rpmFile.rules,
    exclusive: [...rpmFile.rules.exclusive, ['url', 'from'], ['source', 'from']],
  }),
  'package-zypper': defineKind({
    description: 'A package installed by zypper',
    platforms: ['linux'],
    example: 'name: nginx\nversion: latest',
    required: { name: formatted('Name of the package', format.dnfPackage) },
    optional: {
      version: versionRange,
      hold: boolean(
        'Whether zypper locks the package, so that other upgrades do not change it; default: as on the machine',
      ),
      ...rpmFile.fields,
      ensure,
    },
    ...rpmFile.rules,
  }),
  'package-pacman': defineKind({
    description: 'A package installed by pacman',
    platforms: ['linux'],
    example: 'name: nginx\nversion: latest',
    required: { name: formatted('Name of the package', format.dnfPackage) },
    optional: {
      version: versionRange,
      hold: boolean(
        'Whether pacman ignores the package in upgrades, by IgnorePkg in /etc/pacman.conf; default: as on the machine',
      ),
      ensure,
    },
  }),
  'package-apk': packageKind('apk of Alpine Linux', ['linux'], format.packageName, 'name: nginx'),
  'package-brew': packageKind('Homebrew', ['macos', 'linux'], format.packageName, 'name: jq'),
  'package-choco': packageKind('Chocolatey', ['windows'], format.packageName, 'name: git'),
  'package-winget': packageKind('winget', ['windows'], format.packageName, 'name: Git.Git'),
};

/** Packages of a language's registry. `packages: latest` does not apply to them. */
export const languagePackageKinds = {
  'package-npm': defineKind({
    description: 'A package that npm installs globally, under a prefix',
    platforms: ['linux'],
    example: 'name: typescript\nversion: ^5.4',
    required: { name: formatted('Name of the package, with its scope', format.npmPackage) },
    optional: {
      version: formatted('A version, such as 5.4.2, or a range, such as ^5.4; default: any version', format.npmVersion),
      prefix: formatted(
        'Directory with `lib/node_modules` and `bin`; default: /usr/local',
        format.allOf(format.unixFile, format.oneLine),
      ),
      user: formatted('User who owns the prefix and runs npm; default: root', format.unixAccount),
      registry: formatted('URL of the registry; default: the registry in the settings of npm', format.packageIndex),
      ensure,
    },
    identifiedBy: ({ prefix }) => (prefix == null ? ['name'] : ['name', 'prefix']),
    identity: ({ name, prefix }) => (prefix == null || prefix === '/usr/local' ? String(name) : `${name}#${prefix}`),
  }),
  'package-pip': defineKind({
    description:
      'A package, or all packages of a requirements file, that pip installs from wheels in a virtual environment',
    platforms: ['linux'],
    example: 'name: httpie\nversion: 3.2.2\nvirtualenv: /opt/httpie',
    required: {
      virtualenv: formatted(
        'Directory of the virtual environment, which is created if it is missing',
        format.allOf(format.unixFile, format.oneLine),
      ),
    },
    optional: {
      name: formatted('Name of the package, without extras', format.pipPackage),
      requirements: formatted(
        'Absolute path of a requirements file on the machine, whose packages are installed',
        format.allOf(format.unixFile, format.oneLine),
        { pattern: '^/' },
      ),
      version: formatted('An exact version, such as 2.31.0; default: any version', format.pipVersion),
      user: formatted('User who owns the virtual environment and runs pip; default: root', format.unixAccount),
      index_url: text('URL of the index; default: https://pypi.org/simple', format.pipIndex),
      ensure,
    },
    oneOf: [['name', 'requirements']],
    exclusive: [
      ['name', 'requirements'],
      ['requirements', 'version'],
    ],
    faults: ({ name, requirements, ensure: presence }) => {
      if (presence !== 'absent') return [];
      if (requirements != null)
        return [{ path: ['ensure'], message: 'absent cannot be combined with requirements; remove the resource' }];
      return name == null ? [{ path: [], message: 'name is required: add it' }] : [];
    },
    identifiedBy: ({ requirements }) =>
      requirements == null ? ['name', 'virtualenv'] : ['requirements', 'virtualenv'],
    identity: ({ name, requirements, virtualenv }) =>
      requirements == null ? `${pythonName(String(name))}#${virtualenv}` : joined(requirements, '#', virtualenv),
    sensitive: ['index_url'],
  }),
};

/** Version for all packages of a module that declare none. */
export const packageDefault = choice('Version of packages that declare none', ['any', 'latest'], 'any');

/**
 * Declares the default version for a package from the package sources if it declares none, and removes `*`, which
 * stands for any version.
 */
export function declareVersion(type: string, body: Record<string, unknown>, versionDefault: string): void {
  if (!Object.hasOwn(packageKinds, type)) return;
  const isFile = body.url !== undefined || body.source !== undefined;
  if (body.version === '*') delete body.version;
  else if (versionDefault === 'latest' && body.version === undefined && body.ensure !== 'absent' && !isFile)
    body.version = 'latest';
}
