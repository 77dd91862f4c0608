import { isOwn, nativeArchitecture, splitName } from '../../host/packages/installed-packages.ts';
import { type FileContents, readRpmFile } from '../../host/packages/package-file.ts';
import { isVersion, parseVersion } from '../../host/packages/rpm-version.ts';
import type { FileFormat } from '../package-file/package-file.ts';

/** Package files of rpm. */
export const rpmFile: FileFormat = {
  suffix: '.rpm',
  read: readRpmFile,
  misfit: async (name, contents) => rpmMisfit(name, contents, nativeArchitecture),
  isVersion: (declared, version) => isVersion(declared, parseVersion(version)),
  isPartial: (declared) => !declared.includes(':'),
};

/** Returns why an .rpm file is not the package with this name on this machine, or null. */
export function rpmMisfit(name: string, contents: FileContents, native: string): string | null {
  const [baseName, declaredArch] = splitName(name, (candidate) => candidate === contents.name);
  if (contents.name !== baseName) return `the file has the package ${contents.name}, not ${baseName}`;
  const { architecture: arch } = contents;
  const fits = declaredArch === null ? isOwn({ arch }, native) : arch === declaredArch;
  return fits
    ? null
    : `the file is for the architecture ${arch}, not ${declaredArch ?? native}; for another architecture, declare ${baseName}.${arch}`;
}
