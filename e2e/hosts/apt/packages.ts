/** Small packages built for tests, each with one special behavior. */

export interface PackageRecipe {
  name: string;
  version: string;
  depends?: string;
  /** Content of the package's files, by path. */
  files?: Readonly<Record<string, string>>;
  /** Paths of configuration files, which the administrator owns after installation. */
  conffiles?: readonly string[];
  postinst?: string;
  prerm?: string;
  postrm?: string;
}

const unit = (version: string) => `[Unit]
Description=Sample service ${version}

[Service]
ExecStart=/bin/sleep infinity

[Install]
WantedBy=multi-user.target
`;

/** Starts and enables a service, and reverts both on removal, like Debian's own packages. */
const service = {
  postinst: `if [ "$1" = configure ]; then
  deb-systemd-helper unmask sample.service > /dev/null || true
  deb-systemd-helper enable sample.service > /dev/null || true
  systemctl daemon-reload
  deb-systemd-invoke start sample.service > /dev/null || true
fi`,
  prerm: `if [ "$1" = remove ]; then
  deb-systemd-invoke stop sample.service > /dev/null || true
  deb-systemd-helper disable sample.service > /dev/null || true
fi`,
};

const versions = ['1.0', '2.0'];

export const recipes: readonly PackageRecipe[] = versions.flatMap((version): PackageRecipe[] => [
  /** Has one file, which contains the version. */
  { name: 'sample-plain', version, files: { '/usr/share/sample-plain/version': `${version}\n` } },
  /** `/etc/sample-config.conf` is a conffile, and different in each version. */
  {
    name: 'sample-config',
    version,
    files: { '/etc/sample-config.conf': `# of version ${version}\ncolour = blue\n` },
    conffiles: ['/etc/sample-config.conf'],
  },
  /** Needs sample-plain in the same or a later version. */
  { name: 'sample-dependent', version, depends: `sample-plain (>= ${version})` },
  /** Has `sample.service`, which it enables and starts when it is configured. */
  { name: 'sample-service', version, files: { '/lib/systemd/system/sample.service': unit(version) }, ...service },
  /** Creates the account `sample`. */
  {
    name: 'sample-account',
    version,
    postinst: `if [ "$1" = configure ] && ! getent passwd sample > /dev/null; then
  useradd --system --user-group --home-dir /nonexistent --no-create-home --shell /usr/sbin/nologin sample
fi`,
  },
  /** Fails to configure while `/etc/sample-broken` exists. */
  {
    name: 'sample-broken',
    version,
    postinst: `if [ -e /etc/sample-broken ]; then echo "sample-broken: /etc/sample-broken is in the way" >&2; exit 1; fi`,
  },
  /**
   * Takes the number of seconds in `/etc/sample-slow` to configure, else 2. Creates `/run/sample-slow` at the start.
   */
  {
    name: 'sample-slow',
    version,
    files: { '/usr/share/sample-slow/version': `${version}\n` },
    postinst: `touch /run/sample-slow
sleep "$(cat /etc/sample-slow 2> /dev/null || echo 2)"
echo configured > /var/lib/sample-slow`,
    prerm: `rm -f /var/lib/sample-slow`,
  },
  /** Has data; a purge deletes it with all files that users added. Takes as long as sample-slow to configure. */
  {
    name: 'sample-data',
    version,
    depends: 'sample-plain',
    files: { '/etc/sample-data/main.conf': 'colour = blue\n' },
    conffiles: ['/etc/sample-data/main.conf'],
    postinst: `touch /run/sample-data
sleep "$(cat /etc/sample-slow 2> /dev/null || echo 0)"
mkdir -p /var/lib/sample-data; echo made > /var/lib/sample-data/made`,
    postrm: `if [ "$1" = purge ]; then rm -rf /etc/sample-data; find /var/lib/sample-data -mindepth 1 -delete || true
rmdir /var/lib/sample-data || true; fi`,
  },
]);
