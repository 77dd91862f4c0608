/**
 * Which mounts are the machine's disks, each file system once. Decided from /proc/self/mountinfo alone, since a mount that
 * is asked may never answer.
 */

export interface Mount {
  id: number;
  parent: number;
  /** `major:minor` of what it is on; major 0 where the kernel made one up. */
  device: string;
  /** Which directory of the file system is mounted. */
  root: string;
  /** Where it is mounted, each byte a character. */
  path: string;
  type: string;
  source: string;
  /** Options of the file system, not of the mount. */
  options: string;
}

/** @param text of /proc/self/mountinfo, each byte a character. A line that is malformed is not there. */
export function parseMounts(text: string): Mount[] {
  const mounts: Mount[] = [];
  for (const line of text.split('\n')) {
    const fields = line.split(' ');
    // Between the sixth and the dash there are any number of optional ones.
    const dash = fields.indexOf('-', 6);
    const [id, parent, device, root, path] = fields;
    const [type, source, options] = dash < 0 ? [] : fields.slice(dash + 1);
    if (!isNumber(id) || !isNumber(parent) || device === undefined || !/^\d+:\d+$/.test(device)) continue;
    if (root === undefined || !path?.startsWith('/') || !type || source === undefined) continue;
    mounts.push({
      id: Number(id),
      parent: Number(parent),
      device,
      root: plain(root),
      path: plain(path),
      type,
      source: plain(source),
      options: options ?? '',
    });
  }
  return mounts;
}

const isNumber = (text: string | undefined): text is string => text !== undefined && /^\d{1,10}$/.test(text);

/** Spaces, tabs, newlines and backslashes are written as octal numbers there. */
const plain = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

/** A file system that counts, and where to ask for its room. */
export interface FileSystem {
  path: string;
  /** Of ZFS: file systems of one pool share what is free. */
  pool: string | null;
}

/** Local file systems that stand on no one block device, and have a number made up by the kernel. */
const localTypes: ReadonlySet<string> = new Set(['btrfs', 'bcachefs', 'zfs', 'ubifs']);
/** Images, full by nature; and file systems of a cluster, which may wait for other machines. */
const passedOver: ReadonlySet<string> = new Set([
  ...['iso9660', 'udf', 'squashfs', 'erofs', 'cramfs', 'romfs'],
  ...['ocfs2', 'gfs2'],
]);
/** Where a look below may wait for another machine, or for a program of this one. */
const farTypes =
  /^(nfs\d?|cifs|smb\d?|smbfs|ncpfs|afs|coda|ceph|9p|virtiofs|lustre|glusterfs|gpfs|beegfs|orangefs|pvfs2|davfs|ocfs2|gfs2|fuse|fuse\..*)$/;

/** Memory disks and loop devices: what is on them is in memory, or in a file of another file system. */
const virtualMajors: ReadonlySet<string> = new Set(['1', '7']);
/** The same by their names, for what has a number made up by the kernel, and swap space in memory that somebody made a file system on. */
const virtualSources = /^\/dev\/(loop|ram|zram)\d/;

/** @returns in the order of the mounts */
export function fileSystems(mounts: readonly Mount[]): FileSystem[] {
  const tree = new MountTree(mounts);
  const seen = new Set<string>();
  const found: FileSystem[] = [];
  for (const mount of mounts) {
    if (!isDisk(mount)) continue;
    // Each subvolume of btrfs may have a number of its own; all name the same device.
    const key = mount.type === 'btrfs' || mount.type === 'zfs' ? `${mount.type} ${mount.source}` : mount.device;
    // The way is looked at last: there may be thousands of mounts of one disk.
    if (seen.has(key) || seen.has(mount.path) || !tree.isReachable(mount)) continue;
    seen.add(key).add(mount.path);
    found.push({ path: mount.path, pool: mount.type === 'zfs' ? mount.source.split('/')[0]! : null });
  }
  return found;
}

function isDisk({ device, type, source }: Mount): boolean {
  if (passedOver.has(type)) return false;
  if (virtualSources.test(source)) return false;
  const major = device.split(':')[0]!;
  // A snapshot of ZFS is part of what it was taken of.
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
   * Whether its path leads to it, over nothing that could hold up whoever looks: no other mount is on top of it or of a
   * directory on the way, and none on the way is of the network, of a program, or one that an automounter takes away
   * again once nobody looks. The root may be of the network: without it nothing works here, this process neither.
   */
  isReachable(mount: Mount): boolean {
    if (this.#childrenOf(mount).some((other) => other !== mount && other.path === mount.path)) return false;
    const passed = new Set<number>();
    for (let below = mount; ; ) {
      const above = this.#byId.get(below.parent);
      // The root of what is seen: its parent is outside, or is itself.
      if (above === undefined || above === below) return true;
      if (passed.has(above.id) || (above.path !== '/' && isInTheWay(above))) return false;
      if (this.#childrenOf(above).some((other) => covers(other, below))) return false;
      passed.add(above.id);
      below = above;
    }
  }

  #childrenOf({ id }: Mount): readonly Mount[] {
    return this.#children.get(id) ?? [];
  }
}

const covers = (other: Mount, { path }: Mount): boolean =>
  path !== other.path && path.startsWith(other.path === '/' ? '/' : `${other.path}/`);

function isInTheWay({ type, options }: Mount): boolean {
  if (type !== 'autofs') return farTypes.test(type);
  return !/(^|,)timeout=0(,|$)/.test(options);
}
