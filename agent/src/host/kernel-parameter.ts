import { closeSync, constants, lstatSync, openSync, readFileSync, writeSync } from 'node:fs';
import { errnoOf, HostFailure, hostFailure } from './failure.ts';

const root = '/proc/sys';

/**
 * Returns the path of a parameter below /proc/sys. As in sysctl(8), the separator is "." or "/", whichever comes first
 * in the key, and the other character stands for a literal ".": `net.ipv4.conf.eth0/1.mtu` is the MTU of eth0.1.
 * @throws HostFailure if the path would lead out of /proc/sys
 */
export function parameterPath(key: string): string {
  const slashed = key.search(/[./]/) >= 0 && key[key.search(/[./]/)] === '/';
  const parts = slashed ? key.split('/') : key.split('.').map((part) => part.replaceAll('/', '.'));
  if (parts.some((part) => part === '' || part === '.' || part === '..' || part.includes('\0')))
    throw new HostFailure(`${JSON.stringify(key)} is not the name of a kernel parameter`);
  return parts.join('/');
}

/** Returns the canonical, dotted name of a parameter. */
export const parameterName = (path: string): string =>
  path.replace(/[./]/g, (separator) => (separator === '/' ? '.' : '/'));

/** Normalizes white space, because the kernel separates numbers with tabs, whereas operators use spaces. */
export const normalizedValue = (text: string): string => text.trim().replace(/\s+/g, ' ');

/**
 * Reads a parameter.
 * @param path from `parameterPath`
 * @returns the value with normalized white space, or null if the kernel has no such parameter
 * @throws HostFailure if the parameter cannot be read
 */
export function readParameter(path: string): string | null {
  const file = `${root}/${path}`;
  try {
    const stats = lstatSync(file, { throwIfNoEntry: false });
    if (stats === undefined) return null;
    if (stats.isDirectory())
      throw new HostFailure(`${parameterName(path)} is a directory of parameters, not a parameter`);
    return normalizedValue(readFileSync(file, 'latin1'));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return null;
    if (errnoOf(error) === 'EACCES' || errnoOf(error) === 'EIO' || errnoOf(error) === 'EINVAL')
      throw new HostFailure(`the kernel parameter ${parameterName(path)} cannot be read, so it cannot be managed`);
    throw hostFailure(error, `read the kernel parameter ${parameterName(path)}`);
  }
}

/**
 * Sets a parameter until the next boot.
 * @throws HostFailure if the kernel rejects or changes the value
 */
export function writeParameter(path: string, value: string): void {
  const name = parameterName(path);
  try {
    const fd = openSync(`${root}/${path}`, constants.O_WRONLY | constants.O_NOFOLLOW);
    try {
      writeSync(fd, `${value}\n`);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    const code = errnoOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') throw new HostFailure(missingParameter(path));
    if (code === 'EROFS' || code === 'EACCES' || code === 'EPERM')
      throw new HostFailure(`the kernel parameter ${name} is read-only, as most parameters are in a container`);
    if (code === 'EINVAL' || code === 'ERANGE') throw new HostFailure(`the kernel rejected this value for ${name}`);
    throw hostFailure(error, `set the kernel parameter ${name}`);
  }
  if (readParameter(path) !== normalizedValue(value))
    throw new HostFailure(
      `the kernel changed or limited the declared value of ${name}; declare the value that the kernel uses`,
    );
}

export const missingParameter = (path: string): string =>
  `the kernel has no parameter ${parameterName(path)}: ${root}/${path} does not exist. If a kernel module or a network interface provides it, load or create that first.`;
