import { unescaped } from '../../../lib/src/mount-points.ts';

/**
 * Finds the mounted disks of the machine, listing each file system once. Uses only /proc/self/mountinfo, because
 * accessing a mount may hang.
 */

export interface Mount {
  id: number;
  parent: number;
  /** `major:minor` of the device. Major 0 means a virtual number that the kernel assigned. */
  device: string;
  /** The directory of the file system that is mounted. */
  root: string;
  /** The mount point (latin1). */
  path: string;
  type: string;
  source: string;
  /** File system options, not mount options. */
  options: string;
}

/** Parses /proc/self/mountinfo (latin1, proc_pid_mountinfo(5)). Skips malformed lines. */
export function parseMounts(text: string): Mount[] {
  const mounts: Mount[] = [];
  for (const line of text.split('\n')) {
    const fields = line.split(' ');
    // Any number of optional fields may follow the sixth field, up to a dash.
    const dash = fields.indexOf('-', 6);
    const [id, parent, device, root, path] = fields;
    const [type, source, options] = dash < 0 ? [] : fields.slice(dash + 1);
    if (!isNumber(id) || !isNumber(parent) || device === undefined || !/^\d+:\d+$/.test(device)) continue;
    if (root === undefined || !path?.startsWith('/') || !type || source === undefined) continue;
    mounts.push({
      id: Number(id),
      parent: Number(parent),
      device,
      root: unescaped(root),
      path: unescaped(path),
      type,
      source: unescaped(source),
      options: options ?? '',
    });
  }
  return mounts;
}

const isNumber = (text: string | undefined): text is string => text !== undefined && /^\d{1,10}$/.test(text);

/** A file system on a disk, and a path to query its capacity. */
export interface FileSystem {
  path: string;
  /** Name of the ZFS pool, whose file systems share their free space; null for other types. */
  pool: string | null;
}

/** Local file systems that may span several block devices and therefore have a virtual device number. */
const localTypes: ReadonlySet<string> = new Set(['btrfs', 'bcachefs', 'zfs', 'ubifs']);
/** Images, which are always full, and cluster file systems, which may wait for other machines. */
const excludedTypes: ReadonlySet<string> = new Set([
  ...['iso9660', 'udf', 'squashfs', 'erofs', 'cramfs', 'romfs'],
  ...['ocfs2', 'gfs2'],
]);
/** File systems that may wait for another machine, or for a program on this one. */
const remoteTypes =
  /^(nfs\d?|cifs|smb\d?|smbfs|ncpfs|afs|coda|ceph|9p|virtiofs|lustre|glusterfs|gpfs|beegfs|orangefs|pvfs2|davfs|ocfs2|gfs2|fuse|fuse\..*)$/;

/** Major numbers of RAM disks and loop devices, whose data is in memory or in a file on another disk. */
const virtualMajors: ReadonlySet<string> = new Set(['1', '7']);
/**
 * Names of RAM disks, loop devices, and zram. File systems with a virtual device number can be recognized only by these
 * names.
 */
const virtualSources = /^\/dev\/(loop|ram|zram)\d/;

/** Returns the file systems on disks, in the order of their mounts. */
export function fileSystems(mounts: readonly Mount[]): FileSystem[] {
  const tree = new MountTree(mounts);
  const seen = new Set<string>();
  const found: FileSystem[] = [];
  for (const mount of mounts) {
    if (!isDisk(mount)) continue;
    // Subvolumes of btrfs may have different numbers but name the same device.
    const key = mount.type === 'btrfs' || mount.type === 'zfs' ? `${mount.type} ${mount.source}` : mount.device;
    // Performs the most expensive check last, because a disk may have thousands of mounts.
    if (seen.has(key) || seen.has(mount.path) || !tree.isReachable(mount)) continue;
    seen.add(key).add(mount.path);
    found.push({ path: mount.path, pool: mount.type === 'zfs' ? mount.source.split('/')[0]! : null });
  }
  return found;
}

function isDisk({ device, type, source }: Mount): boolean {
  if (excludedTypes.has(type)) return false;
  if (virtualSources.test(source)) return false;
  const major = device.split(':')[0]!;
  // A ZFS snapshot is part of its file system.
  if (Number(major) === 0) return localTypes.has(type) && !(type === 'zfs' && source.includes('@'));
  return !virtualMajors.has(major);
}

class MountTree {
  readonly #byId: ReadonlyMap<number, Mount>;
  readonly #children = new Map<number, Mount[]>();

  constructor(mounts: readonly Mount[]) {
    this.#byId = new Map(mounts.map((mount) => [mount.id, mount]));
    for (const mount of mounts) {
      const siblings = this.#children.get(mount.parent);
      if (siblings === undefined) this.#children.set(mount.parent, [mount]);
      else siblings.push(mount);
    }
  }

  /**
   * Reports whether a mount can be accessed by its path without risk of hanging: no other mount covers the path or a
   * directory above it, and no mount above it is remote, served by a program, or an automount with a timeout. The root
   * may be remote, because this process does not work without the root anyway.
   */
  isReachable(mount: Mount): boolean {
    if (this.#childrenOf(mount).some((other) => other !== mount && other.path === mount.path)) return false;
    const visited = new Set<number>();
    for (let below = mount; ; ) {
      const above = this.#byId.get(below.parent);
      // The parent of the root mount is outside the namespace, or is the root mount itself.
      if (above === undefined || above === below) return true;
      if (visited.has(above.id) || (above.path !== '/' && mayHang(above))) return false;
      if (this.#childrenOf(above).some((other) => covers(other, below))) return false;
      visited.add(above.id);
      below = above;
    }
  }

  #childrenOf({ id }: Mount): readonly Mount[] {
    return this.#children.get(id) ?? [];
  }
}

const covers = (other: Mount, { path }: Mount): boolean =>
  path !== other.path && path.startsWith(other.path === '/' ? '/' : `${other.path}/`);

function mayHang({ type, options }: Mount): boolean {
  if (type !== 'autofs') return remoteTypes.test(type);
  return !/(^|,)timeout=0(,|$)/.test(options);
}
