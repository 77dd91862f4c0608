import { derivedRoot } from './derived-root.ts';

/**
 * Builds the root for the machine that runs the documentation's recipes. Contains an SSH server, which the recipes
 * configure, and the dependencies of the recipes' packages, so that the test installs only the packages themselves.
 */
export const recipesRoot = (): Promise<string> =>
  derivedRoot({
    name: 'recipes',
    packages: [
      ...['adduser', 'ucf', 'netbase', 'xz-utils', 'openssh-server', 'libnftables1', 'git'],
      ...['perl', 'libjson-perl', 'libllvm14', 'libicu72', 'libxml2', 'libxslt1.1', 'libpq5', 'ssl-cert', 'locales'],
      ...['python3-apt', 'python3-dbus', 'python3-distro-info', 'python3-gi', 'lsb-release'],
    ],
  });
