# Hold AIO requests, so that a server finds few that are free: hold_aio.pl FILE FREE
#
# Takes the free requests of fs.aio-max-nr except FREE, creates FILE, and ends when FILE is removed or after two minutes.
use strict;
use warnings;

use POSIX ();

my $machine = (POSIX::uname())[4];
my %io_setup = (x86_64 => 206, aarch64 => 0);
die "the number of io_setup() on $machine is not known here" unless exists $io_setup{$machine};

my ($file, $keep_free) = @ARGV;

sub number {
  open(my $in, '<', shift) or die;
  return 0 + <$in>;
}

my @contexts;
# Take the free requests except FREE. Another server on the machine can give requests back at any time.
sub take {
  my $free = number('/proc/sys/fs/aio-max-nr') - number('/proc/sys/fs/aio-nr');
  while ($free > $keep_free) {
    # The kernel allocates a ring of twice this number, so the test takes several contexts of moderate size.
    my $n = $free - $keep_free < 8192 ? $free - $keep_free : 8192;
    my $context = pack('Q', 0);
    syscall($io_setup{$machine}, $n, $context) == 0 or return;
    push(@contexts, $context);
    $free -= $n;
  }
}

take();
open(my $out, '>', $file) or die;
close($out);
for (1 .. 1200) {
  last unless -e $file;
  take();
  select(undef, undef, undef, 0.1);
}
unlink($file);
