// Draws certificates: the library lib/assay/certificate.so.
#include <cairo-pdf.h>
#include <cairo.h>
#include <pango/pangocairo.h>

#include <memory>
#include <string>

#include "worklog/certificate_sheet.h"

namespace assay {
namespace {

// A4, landscape [points].
constexpr double kWidth = 842, kHeight = 595, kMargin = 64;

struct Colour {
  double red, green, blue;
};
constexpr Colour kInk{0.14, 0.16, 0.18}, kFaint{0.34, 0.38, 0.42}, kHand{0.08, 0.33, 0.55},
    kModel{0.70, 0.28, 0.04};

struct FreeSurface {
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
};
struct FreeContext {
  void operator()(cairo_t* context) const { cairo_destroy(context); }
};

// Text and lines on one page.
class Sheet {
 public:
  explicit Sheet(cairo_t* context) : context_(context) {}

  // Draws text in the middle of a width, wrapped; returns the height that it took.
  double Text(double x, double y, double width, const char* font, Colour colour,
              const std::string& text) {
    PangoLayout* const layout = pango_cairo_create_layout(context_);
    PangoFontDescription* const description = pango_font_description_from_string(font);
    pango_layout_set_font_description(layout, description);
    pango_layout_set_width(layout, static_cast<int>(width * PANGO_SCALE));
    pango_layout_set_wrap(layout, PANGO_WRAP_WORD_CHAR);
    pango_layout_set_alignment(layout, PANGO_ALIGN_CENTER);
    pango_layout_set_text(layout, text.c_str(), static_cast<int>(text.size()));
    cairo_set_source_rgb(context_, colour.red, colour.green, colour.blue);
    cairo_move_to(context_, x, y);
    pango_cairo_show_layout(context_, layout);
    int height = 0;
    pango_layout_get_size(layout, nullptr, &height);
    pango_font_description_free(description);
    g_object_unref(layout);
    return static_cast<double>(height) / PANGO_SCALE;
  }

  void Box(double x, double y, double width, double height, double line, Colour colour) {
    cairo_set_source_rgb(context_, colour.red, colour.green, colour.blue);
    cairo_set_line_width(context_, line);
    cairo_rectangle(context_, x, y, width, height);
    cairo_stroke(context_);
  }

  void Bar(double x, double y, double width, double height, Colour colour) {
    cairo_set_source_rgb(context_, colour.red, colour.green, colour.blue);
    cairo_rectangle(context_, x, y, width, height);
    cairo_fill(context_);
  }

 private:
  cairo_t* context_;
};

void Draw(const CertificateSheet& text, Sheet* sheet) {
  constexpr double kInner = kWidth - 2 * kMargin;
  sheet->Box(24, 24, kWidth - 48, kHeight - 48, 1.5, kInk);
  sheet->Box(30, 30, kWidth - 60, kHeight - 60, 0.5, kFaint);
  const auto centred = [&](double y, const char* font, Colour colour, const std::string& line) {
    return sheet->Text(kMargin, y, kInner, font, colour, line);
  };
  centred(58, "DejaVu Sans 12", kFaint, "Certificate of a worklog");
  centred(80, "DejaVu Serif Bold 30", kInk, "You vs the machine");
  double y = 138;
  if (!text.author.empty()) y += centred(y, "DejaVu Serif 22", kInk, text.author) + 8;
  y += centred(y, "DejaVu Sans 13", kFaint, text.subject) + 2;
  centred(y, "DejaVu Sans 11", kFaint, text.tier);
  constexpr double kColumn = kInner / 2 - 12;
  for (const CertificateSide* side : {&text.hand, &text.model}) {
    const bool hand = side == &text.hand;
    const double x = hand ? kMargin : kMargin + kInner / 2 + 12;
    sheet->Box(x, 250, kColumn, 108, 0.7, kFaint);
    sheet->Bar(x, 250, kColumn, 5, hand ? kHand : kModel);
    sheet->Text(x, 266, kColumn, "DejaVu Sans 12", kFaint, side->title);
    sheet->Text(x, 284, kColumn, "DejaVu Sans Bold 28", kInk, side->best);
    sheet->Text(x, 330, kColumn, "DejaVu Sans 10", kFaint, side->note);
  }
  centred(376, "DejaVu Sans 11", kInk, text.race);
  centred(420, "DejaVu Serif 15", kInk, text.marks);
  centred(458, "DejaVu Sans 9", kFaint,
          "Speed earns no points: the worklog does. Both sides were judged on the same reference, "
          "by the same two gates.");
  centred(508, "DejaVu Sans Mono 8", kFaint, text.worklog);
  centred(521, "DejaVu Sans Mono 8", kInk, text.hash);
}

}  // namespace
}  // namespace assay

extern "C" bool AssayDrawCertificate(const assay::CertificateSheet& text, std::string* pdf) {
  using namespace assay;
  const auto keep = [](void* closure, const unsigned char* data, unsigned int length) {
    static_cast<std::string*>(closure)->append(reinterpret_cast<const char*>(data), length);
    return CAIRO_STATUS_SUCCESS;
  };
  const std::unique_ptr<cairo_surface_t, FreeSurface> surface(
      cairo_pdf_surface_create_for_stream(keep, pdf, kWidth, kHeight));
  cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_TITLE, text.title.c_str());
  cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATE_DATE,
                                 text.created.c_str());
  {
    const std::unique_ptr<cairo_t, FreeContext> context(cairo_create(surface.get()));
    Sheet sheet(context.get());
    Draw(text, &sheet);
    cairo_show_page(context.get());
  }
  cairo_surface_finish(surface.get());
  return cairo_surface_status(surface.get()) == CAIRO_STATUS_SUCCESS;
}
