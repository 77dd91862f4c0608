# 20 directories, 200 files of 1024 bytes.  puppet apply --detailed-exitcodes files.pp
$root = '/var/tmp/converge/puppet'
file { $root: ensure => directory, mode => '0755' }
Integer[0,19].each |$d| {
  file { "${root}/d${d}": ensure => directory, mode => '0755' }
}
Integer[0,199].each |$i| {
  $d = $i % 20
  file { "${root}/d${d}/f${i}":
    ensure  => file,
    mode    => '0644',
    content => sprintf("%-1023s\n", "file ${i}"),
  }
}
