/** Small packages that the tests build, each with one special behavior. */

export interface PackageRecipe {
  name: string;
  version: string;
  depends?: string;
  /** Contents of the package's files, by path. */
  files?: Readonly<Record<string, string>>;
  /** Paths of the package's configuration files, which dpkg does not overwrite if the administrator has edited them. */
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

/** Maintainer scripts that enable and start a service, and revert both on removal, like Debian's own packages. */
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
  /** Contains one file with the version. */
  { name: 'sample-plain', version, files: { '/usr/share/sample-plain/version': `${version}\n` } },
  /** Contains the conffile `/etc/sample-config.conf`, which differs between versions. */
  {
    name: 'sample-config',
    version,
    files: { '/etc/sample-config.conf': `# of version ${version}\ncolour = blue\n` },
    conffiles: ['/etc/sample-config.conf'],
  },
  /** Depends on sample-plain in the same or a later version. */
  { name: 'sample-dependent', version, depends: `sample-plain (>= ${version})` },
  /** Contains `sample.service`, which it enables and starts when it is configured. */
  { name: 'sample-service', version, files: { '/lib/systemd/system/sample.service': unit(version) }, ...service },
  /** Creates the account `sample`. */
  {
    name: 'sample-account',
    version,
    postinst: `if [ "$1" = configure ] && ! getent passwd sample > /dev/null; then
  useradd --system --user-group --home-dir /nonexistent --no-create-home --shell /usr/sbin/nologin sample
fi`,
  },
  /** Fails to be configured while `/etc/sample-broken` exists. */
  {
    name: 'sample-broken',
    version,
    postinst: `if [ -e /etc/sample-broken ]; then echo "sample-broken: /etc/sample-broken is in the way" >&2; exit 1; fi`,
  },
  /**
   * When configured, creates `/run/sample-slow`, waits for the number of seconds in `/etc/sample-slow` (2 by default),
   * and for as long as `/etc/sample-hold` exists.
   */
  {
    name: 'sample-slow',
    version,
    files: { '/usr/share/sample-slow/version': `${version}\n` },
    postinst: `touch /run/sample-slow
sleep "$(cat /etc/sample-slow 2> /dev/null || echo 2)"
while [ -e /etc/sample-hold ]; do sleep 0.2; done
echo configured > /var/lib/sample-slow`,
    prerm: `rm -f /var/lib/sample-slow`,
  },
  /**
   * Creates data. A purge deletes the data together with files that users added. Takes as many seconds to configure as
   * `/etc/sample-slow` specifies, by default 0.
   */
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
