import type { Subject } from './subject.ts';

/**
 * Shell text that installs stand-ins for swapon and swapoff, with their own list of the files in use. All test hosts
 * share the kernel of the machine that runs the tests, and thus its swap. Like the kernel, the stand-in refuses a file
 * that is not a swap file, or that has holes. The other programs, such as mkswap, are real.
 */
const ownSwap = `touch /run/swaps
cat > /usr/local/sbin/swapon <<'END'
#!/bin/sh -eu
case $1 in --show=NAME,PRIO) cat /run/swaps; exit ;; esac
[ "$1 $3" = '-o --' ]
! grep -q "^$4 " /run/swaps
swaplabel "$4" > /dev/null
[ $(($(stat -c %b "$4") * 512)) -ge "$(stat -c %s "$4")" ]
priority=$(echo ",$2," | sed -n 's/.*,pri=\\([0-9]*\\),.*/\\1/p')
echo "$4 \${priority:--2}" >> /run/swaps
END
cat > /usr/local/sbin/swapoff <<'END'
#!/bin/sh -eu
grep -q "^$2 " /run/swaps
sed -i "\\,^$2 ,d" /run/swaps
END
chmod 755 /usr/local/sbin/swapon /usr/local/sbin/swapoff
`;
const state = 'cat /run/swaps';
const path = '/swapfile';
const others = `printf '# By hand.\\n\\nUUID=0123\\t/data  ext4\\tnoauto,noatime 0\\t2\\n' > /etc/fstab\n`;
const earlier = `${ownSwap}${others}fallocate -l 2M ${path}; mkswap -L earlier ${path}; chmod 644 ${path}
printf '${path}\\tswap swap  pri=7,nofail 0\\n# end\\n' >> /etc/fstab
`;

export const swapSubjects: readonly Subject[] = [
  {
    name: 'swap, new, with other lines in fstab',
    prepare: `${ownSwap}${others}`,
    desired: { swap: { path, size: '1M', priority: 5, options: 'discard' } },
    changed: { swap: { path, size: '2M', priority: 7 } },
    tamper: `swapoff -- ${path}; chmod 644 ${path}; sed -i s/pri=5/pri=6/ /etc/fstab`,
    moved: ['mode', 'options', 'active'],
    state,
  },
  {
    name: 'swap, previously in use with another size',
    prepare: `${earlier}swapon -o pri=7 -- ${path}`,
    desired: { swap: { path, size: '1M', priority: 7, options: 'nofail' } },
    changed: { swap: { path, size: '1M', priority: 3, options: 'discard' } },
    tamper: `swapoff -- ${path}; swapon -o pri=9 -- ${path}`,
    moved: ['live_priority'],
    state,
  },
  {
    name: 'swap, absent, previously in use',
    prepare: `${earlier}swapon -o pri=9 -- ${path}`,
    desired: { swap: { path, ensure: 'absent' } },
    changed: { swap: { path, size: '3M' } },
    tamper: `fallocate -l 1M ${path}; chmod 600 ${path}; mkswap ${path}; swapon -o sw -- ${path}`,
    moved: ['ensure', 'size', 'active'],
    state,
  },
];
