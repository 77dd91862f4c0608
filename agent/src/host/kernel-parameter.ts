import { closeSync, constants, lstatSync, openSync, readFileSync, writeSync } from 'node:fs';
import { errnoOf, HostFailure, hostFailure } from './failure.ts';

const root = '/proc/sys';

/**
 * Where a parameter is below /proc/sys, as sysctl has it: whichever of "." and "/" comes first separates its parts, and
 * the other one stands for itself, or rather for the first: `net.ipv4.conf.eth0/1.mtu` is about eth0.1.
 * @throws HostFailure when that would be somewhere else
 */
export function parameterPath(key: string): string {
  const slashed = key.search(/[./]/) >= 0 && key[key.search(/[./]/)] === '/';
  const parts = slashed ? key.split('/') : key.split('.').map((part) => part.replaceAll('/', '.'));
  if (parts.some((part) => part === '' || part === '.' || part === '..' || part.includes('\0')))
    throw new HostFailure(`${JSON.stringify(key)} is not the name of a kernel parameter`);
  return parts.join('/');
}

/** The one spelling of a parameter: with dots. */
export const parameterName = (path: string): string =>
  path.replace(/[./]/g, (separator) => (separator === '/' ? '.' : '/'));

/** Values are compared without regard to how their numbers are set apart. */
export const plainValue = (text: string): string => text.trim().replace(/\s+/g, ' ');

/**
 * @param path as `parameterPath` has it
 * @returns null when the kernel has no such parameter
 * @throws HostFailure when it cannot be read
 */
export function readParameter(path: string): string | null {
  const file = `${root}/${path}`;
  try {
    const stats = lstatSync(file, { throwIfNoEntry: false });
    if (stats === undefined) return null;
    if (stats.isDirectory()) throw new HostFailure(`${parameterName(path)} is a group of parameters, not one`);
    return plainValue(readFileSync(file, 'latin1'));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return null;
    if (errnoOf(error) === 'EACCES' || errnoOf(error) === 'EIO' || errnoOf(error) === 'EINVAL')
      throw new HostFailure(`the kernel parameter ${parameterName(path)} cannot be read, so it cannot be managed`);
    throw hostFailure(error, `read the kernel parameter ${parameterName(path)}`);
  }
}

/** @throws HostFailure when the kernel does not take it, or has another value afterwards */
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
      throw new HostFailure(`the kernel parameter ${name} is read-only here, as most are in a container`);
    if (code === 'EINVAL' || code === 'ERANGE')
      throw new HostFailure(`the kernel does not take this value for ${name}`);
    throw hostFailure(error, `set the kernel parameter ${name}`);
  }
  if (readParameter(path) !== plainValue(value))
    throw new HostFailure(
      `the kernel has another value for ${name} than the one that was set: it changed or limited it`,
    );
}

export const missingParameter = (path: string): string =>
  `the kernel has no parameter ${parameterName(path)}: ${root}/${path} is not there. A module or a network interface may have to come first.`;
