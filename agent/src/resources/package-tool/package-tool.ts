import { readLocks } from '../../host/packages/package-locks.ts';
import { readOffers } from './seen.ts';
import type { PackageCommands, PackageTool } from './tool.ts';

/** Adds to the commands of a package manager what each operation reads of it once. */
export function packageTool(commands: PackageCommands): PackageTool {
  const { program, locks } = commands;
  const tool: PackageTool = {
    ...commands,
    database: {
      name: `packages of ${program}`,
      async read(machine) {
        const installed = await commands.readInstalled(machine);
        return { ...installed, lockList: readLocks(locks), canLock: locks.isUsed() };
      },
    },
    freshOffers: { name: `${program} offers`, read: (machine) => readOffers(tool, 'hourly', machine) },
    knownOffers: { name: `known ${program} offers`, read: (machine) => readOffers(tool, 'known', machine) },
    ground: {
      name: `${program} packages before an installation`,
      async read(machine) {
        const { packages } = await machine.database(tool.database);
        return machine.copies.keep(Buffer.from(JSON.stringify([...packages.keys()])));
      },
    },
  };
  return tool;
}
