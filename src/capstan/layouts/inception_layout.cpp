#include "capstan/layouts/families.h"
#include "capstan/layouts/network_recipes.h"

namespace capstan::layouts {
namespace {

// The five kinds of modules, as torchvision calls them.
class Modules {
 public:
  explicit Modules(TensorTable& table) : table_(table) {}

  void a(const std::string& at, std::int64_t in, std::int64_t pooled) {
    table_.unit(at + ".branch1x1", in, 64, 1);
    table_.unit(at + ".branch5x5_1", in, 48, 1);
    table_.unit(at + ".branch5x5_2", 48, 64, 5);
    table_.unit(at + ".branch3x3dbl_1", in, 64, 1);
    table_.unit(at + ".branch3x3dbl_2", 64, 96, 3);
    table_.unit(at + ".branch3x3dbl_3", 96, 96, 3);
    table_.unit(at + ".branch_pool", in, pooled, 1);
  }

  void b(const std::string& at, std::int64_t in) {
    table_.unit(at + ".branch3x3", in, 384, 3);
    table_.unit(at + ".branch3x3dbl_1", in, 64, 1);
    table_.unit(at + ".branch3x3dbl_2", 64, 96, 3);
    table_.unit(at + ".branch3x3dbl_3", 96, 96, 3);
  }

  void c(const std::string& at, std::int64_t in, std::int64_t width) {
    table_.unit(at + ".branch1x1", in, 192, 1);
    table_.unit(at + ".branch7x7_1", in, width, 1);
    table_.unit(at + ".branch7x7_2", width, width, 1, 7);
    table_.unit(at + ".branch7x7_3", width, 192, 7, 1);
    table_.unit(at + ".branch7x7dbl_1", in, width, 1);
    table_.unit(at + ".branch7x7dbl_2", width, width, 7, 1);
    table_.unit(at + ".branch7x7dbl_3", width, width, 1, 7);
    table_.unit(at + ".branch7x7dbl_4", width, width, 7, 1);
    table_.unit(at + ".branch7x7dbl_5", width, 192, 1, 7);
    table_.unit(at + ".branch_pool", in, 192, 1);
  }

  void d(const std::string& at, std::int64_t in) {
    table_.unit(at + ".branch3x3_1", in, 192, 1);
    table_.unit(at + ".branch3x3_2", 192, 320, 3);
    table_.unit(at + ".branch7x7x3_1", in, 192, 1);
    table_.unit(at + ".branch7x7x3_2", 192, 192, 1, 7);
    table_.unit(at + ".branch7x7x3_3", 192, 192, 7, 1);
    table_.unit(at + ".branch7x7x3_4", 192, 192, 3);
  }

  void e(const std::string& at, std::int64_t in) {
    table_.unit(at + ".branch1x1", in, 320, 1);
    table_.unit(at + ".branch3x3_1", in, 384, 1);
    table_.unit(at + ".branch3x3_2a", 384, 384, 1, 3);
    table_.unit(at + ".branch3x3_2b", 384, 384, 3, 1);
    table_.unit(at + ".branch3x3dbl_1", in, 448, 1);
    table_.unit(at + ".branch3x3dbl_2", 448, 384, 3);
    table_.unit(at + ".branch3x3dbl_3a", 384, 384, 1, 3);
    table_.unit(at + ".branch3x3dbl_3b", 384, 384, 3, 1);
    table_.unit(at + ".branch_pool", in, 192, 1);
  }

 private:
  TensorTable& table_;
};

}  // namespace

void add_inception(TensorTable& table, const NetworkInfo& network, std::int64_t channels,
                   std::int64_t classes) {
  table.unit("Conv2d_1a_3x3", channels, 32, 3);
  table.unit("Conv2d_2a_3x3", 32, 32, 3);
  table.unit("Conv2d_2b_3x3", 32, 64, 3);
  table.unit("Conv2d_3b_1x1", 64, 80, 1);
  table.unit("Conv2d_4a_3x3", 80, 192, 3);
  Modules modules(table);
  modules.a("Mixed_5b", 192, 32);
  modules.a("Mixed_5c", 256, 64);
  modules.a("Mixed_5d", 288, 64);
  modules.b("Mixed_6a", 288);
  modules.c("Mixed_6b", 768, 128);
  modules.c("Mixed_6c", 768, 160);
  modules.c("Mixed_6d", 768, 160);
  modules.c("Mixed_6e", 768, 192);
  if (has_auxiliary(network.name)) {
    table.unit("AuxLogits.conv0", 768, 128, 1);
    table.unit("AuxLogits.conv1", 128, 768, 5);
    table.linear("AuxLogits.fc", 768, classes);
  }
  modules.d("Mixed_7a", 768);
  modules.e("Mixed_7b", 1280);
  modules.e("Mixed_7c", 2048);
  table.linear("fc", 2048, classes);
}

}  // namespace capstan::layouts
