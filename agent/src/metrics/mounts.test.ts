import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fileSystems, parseMounts } from './mounts.ts';

const paths = (...lines: string[]) => fileSystems(parseMounts(lines.join('\n'))).map(({ path }) => path);
const root = '27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard';

describe('disks', () => {
  test('includes block devices, and excludes virtual, memory, image, and network file systems', () => {
    const machine = `22 27 0:21 / /proc rw,relatime - proc proc rw
23 27 0:22 / /sys rw,relatime shared:7 - sysfs sysfs rw
24 27 0:6 / /dev rw,relatime shared:2 master:1 - devtmpfs devtmpfs rw,size=12334524k
25 24 0:23 / /dev/shm rw,relatime - tmpfs tmpfs rw
${root}
28 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
30 27 8:17 / /srv rw shared:1 - xfs /dev/sdb1 rw
31 27 7:3 / /snap/core/1 ro - squashfs /dev/loop3 ro
32 27 7:4 / /mnt/image rw - ext4 /dev/loop4 rw
33 27 0:50 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw,lowerdir=/a
34 27 0:51 / /mnt/nas rw - nfs4 nas:/data rw,hard
35 27 0:52 / /mnt/win rw - cifs //nas/data rw
36 27 0:53 / /mnt/ssh rw - fuse.sshfs me@host: rw
37 27 0:54 / /mnt/host rw - 9p host rw
38 27 11:0 / /media/cdrom ro - iso9660 /dev/sr0 ro
39 27 252:0 / /var/log rw - ext4 /dev/zram0 rw
40 27 1:0 / /mnt/ram rw - ext2 /dev/ram0 rw
41 27 8:33 / /mnt/usb rw - fuseblk /dev/sdc1 rw
42 27 8:49 / /mnt/cluster rw - gfs2 /dev/sdd1 rw
43 27 259:2 / /boot/efi rw - vfat /dev/nvme0n1p1 rw`;
    expect(paths(machine)).toEqual(['/', '/srv', '/mnt/usb', '/boot/efi']);
  });

  test('counts a disk with several mounts once', () => {
    expect(
      paths(root, '30 27 254:0 /etc /mnt/bind rw - ext4 /dev/vda rw', '31 27 254:0 / /mnt/all rw - ext4 /dev/vda rw'),
    ).toEqual(['/']);
    // In a container, bind-mounted files reveal the disk below the overlay.
    expect(
      paths(
        '500 400 0:60 / / rw - overlay overlay rw,lowerdir=/l',
        '510 500 8:1 /var/lib/docker/containers/1/hosts /etc/hosts rw - ext4 /dev/sda1 rw',
        '511 500 8:1 /var/lib/docker/containers/1/hostname /etc/hostname rw - ext4 /dev/sda1 rw',
      ),
    ).toEqual(['/etc/hosts']);
    expect(paths('500 400 0:60 / / rw - overlay overlay rw,lowerdir=/l')).toEqual([]);
  });

  test('counts btrfs once for all subvolumes, and each ZFS file system once with its pool', () => {
    const btrfs = ['/', '/home', '/srv'].map(
      (path, n) => `${20 + n} 1 0:${30 + n} /@${n} ${path} rw - btrfs /dev/sda2 rw,subvolid=${256 + n}`,
    );
    expect(paths(...btrfs)).toEqual(['/']);
    for (const device of ['loop0', 'loop12p1', 'zram0', 'ram1'])
      expect(paths(...btrfs.map((line) => line.replace('/dev/sda2', `/dev/${device}`))), device).toEqual([]);
    const zfs = parseMounts(
      [
        '30 1 0:40 / / rw - zfs rpool/ROOT rw',
        '31 30 0:41 / /home rw - zfs rpool/home rw',
        '32 30 0:42 / /tank rw - zfs tank rw',
        '33 31 0:43 / /home/.zfs/snapshot/a ro - zfs rpool/home@a ro',
        '34 30 0:41 / /mnt/home rw - zfs rpool/home rw',
      ].join('\n'),
    );
    expect(fileSystems(zfs)).toEqual([
      { path: '/', pool: 'rpool' },
      { path: '/home', pool: 'rpool' },
      { path: '/tank', pool: 'tank' },
    ]);
  });

  test('skips disks whose mount point is hidden by another mount', () => {
    const data = '30 27 8:17 / /data rw - ext4 /dev/sdb1 rw';
    expect(paths(root, data, '31 30 0:70 / /data rw - tmpfs tmpfs rw')).toEqual(['/']);
    const below = '31 27 8:33 / /data/deep/disk rw - ext4 /dev/sdc1 rw';
    expect(paths(root, below)).toEqual(['/', '/data/deep/disk']);
    expect(paths(root, below, '32 27 0:70 / /data rw - tmpfs tmpfs rw')).toEqual(['/']);
    expect(paths(root, '32 27 0:70 / /data rw - tmpfs tmpfs rw', below.replace('31 27', '31 32'))).toEqual([
      '/',
      '/data/deep/disk',
    ]);
    // Two mounts have the same path, and neither is below the other. Only one of them is visible.
    expect(paths(root, data, data.replace('30 27 8:17', '31 27 8:33'))).toEqual(['/', '/data']);
    // A mount older than the root hides the first one.
    expect(paths('1 1 0:2 / / rw - rootfs rootfs rw', '5 1 8:9 / /old rw - ext4 /dev/sdx rw', root)).toEqual(['/']);
    // Another mount of the same disk is not hidden and is therefore used.
    expect(
      paths(root, data, '31 30 0:70 / /data rw - tmpfs tmpfs rw', '33 27 8:17 / /again rw - ext4 /dev/sdb1 rw'),
    ).toEqual(['/', '/again']);
  });

  test('skips disks below a network mount, a FUSE mount, or an automount with a timeout', () => {
    const disk = '40 30 8:17 / /far/disk rw - ext4 /dev/sdb1 rw';
    for (const far of ['nfs', 'nfs4', 'cifs', 'fuse.sshfs', 'fuse', 'ceph', 'autofs'])
      expect(paths(root, `30 27 0:70 / /far rw - ${far} there rw,timeout=300`, disk), far).toEqual(['/']);
    expect(paths(root, '30 27 0:70 / /far rw - autofs systemd-1 rw,fd=7,timeout=0,direct', disk)).toHaveLength(2);
    // A machine whose root is a network mount.
    for (const far of ['nfs4', 'virtiofs', '9p'])
      expect(paths(`27 1 0:20 / / rw - ${far} there rw`, '30 27 8:17 / /srv rw - ext4 /dev/sdb1 rw')).toEqual(['/srv']);
  });

  test('accepts mount points with any name', () => {
    expect(paths('30 1 8:17 / /a\\040b\\134c\\011\\012ü rw - ext4 /dev/sdb1 rw')).toEqual(['/a b\\c\t\nü']);
  });

  test('parses any text without an error, and lists each path once', () => {
    const text = [root, '30 27 0:70 / /far rw - nfs there rw', '31 30 8:1 / /far/x rw - ext4 /dev/sda rw'].join('\n');
    const field = fc.constantFrom(
      '27',
      '30',
      '27',
      '1',
      '0:1',
      '8:1',
      '/',
      '/x',
      '/x/y',
      'rw',
      '-',
      'ext4',
      'btrfs',
      '',
    );
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.array(field, { maxLength: 12 }).map((fields) => fields.join(' ')),
            fc.string(),
          ),
        ),
        fc.nat(text.length),
        (lines, at) => {
          const found = paths(text.slice(0, at), ...lines, text.slice(at));
          expect(new Set(found).size).toBe(found.length);
        },
      ),
    );
    // Each of the two mounts is an ancestor of itself.
    const loop = ['5 6 8:1 / /a rw - ext4 /dev/a rw', '6 5 8:2 / /b rw - ext4 /dev/b rw'];
    expect(paths(...loop)).toEqual([]);
  });
});
